// Writes the verdicts of Lighthouse's agentic audits on generated evidence, for
// crates/engine/tests/agentic_agreement.rs:
//
//   node bench/agentic_verdicts.mjs DIRECTORY_OF_THE_PACKAGE_lighthouse > crates/engine/tests/data/agentic.json
//
// Each case has the artifacts of a visit in our format, and the verdict of one check.
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const root = path.resolve(process.argv[2] ?? 'node_modules/lighthouse');
const load = async (file) => (await import(pathToFileURL(path.join(root, 'core/audits', file)))).default;
const PASSING_SCORE = 0.9;

async function verdict(audit, artifacts) {
  try {
    const result = await audit.audit(artifacts, {computedCache: new Map()});
    if (result.notApplicable) return 'notApplicable';
    const mode = result.scoreDisplayMode ?? audit.meta.scoreDisplayMode;
    if (mode === 'informative') return 'informative';
    return result.score >= PASSING_SCORE ? 'pass' : 'fail';
  } catch {
    return 'couldNotMeasure';
  }
}

const cases = [];

const llmsTxt = await load('agentic/llms-txt.js');
async function addLlmsTxt({status = null, content = null, error}) {
  const artifacts = {LlmsTxt: {status, content, errorMessage: error}};
  cases.push({check: 'llms-txt', artifacts: {'llms-txt': {status, content, error}}, verdict: await verdict(llmsTxt, artifacts)});
}
const link = '- [All products of the shop](https://example.test/products.md): shoes';
const texts = [
  `# Shop\n\n${link}`, `\ufeff# Shop\n${link}`, `# Shop\r\n${link}`, `Shop\n====\n${link}`, `## Shop\n${link}`,
  `#Shop\n${link}`, `  # Shop\n${link}`, `#\n${link}`, `#\t\n${link}`, `text # Shop ${link}`, `# Shop\n`.repeat(10),
  `# Shop\n[All products]( )${' '.repeat(40)}`, `# Shop\n[]()${'x'.repeat(60)}`, `# Shop\n[a](b)`, `# Shop [a](b) ${'x'.repeat(36)}`,
  `# Shop [a](b) ${'x'.repeat(35)}`, `# Shop [a](b) ${'\u{1f600}'.repeat(18)}`, `\u2028# Shop\n${link}`, `x\r# Shop\n${link}`,
  `\u0085# Shop\n${link}`, `#\u00a0Shop\n${link}`, `<!doctype html><title>Shop</title>${link}`, `# Shop\n[a\n](b)${'x'.repeat(50)}`,
  `# Shop\n[a](b\n)${'x'.repeat(50)}`, `# Shop\n[[]](b)${'x'.repeat(50)}`, `# Shop\n](b) [a]${'x'.repeat(50)}`, '', ' ', '# ',
];
for (const content of texts) await addLlmsTxt({status: 200, content});
for (const status of [null, 204, 304, 400, 401, 403, 404, 410, 429, 499, 500, 503]) await addLlmsTxt({status});
await addLlmsTxt({error: 'Timed out fetching resource'});

const ardSchema = await load('agentic/ard-schema.js');
async function addCatalog({foundBy = 'wellKnown', status = 200, content = null, error}) {
  const signals = {
    robotsTxtAgentmap: foundBy === 'robotsTxt' ? 'x' : null,
    htmlLink: foundBy === 'linkElement' ? 'x' : null,
    httpHeaderLink: foundBy === 'linkHeader' ? 'x' : null,
    wellKnown: 'x',
  };
  const artifacts = {AgentResourceDiscovery: {status, content, errorMessage: error, discoverySignals: signals}};
  cases.push({check: 'ard-schema', artifacts: {'ai-catalog': {foundBy, status, content, error}}, verdict: await verdict(ardSchema, artifacts)});
}
const entry = {
  identifier: 'urn:air:example.test:shop:search', displayName: 'Search', type: 'application/mcp-server-card+json',
  url: 'https://example.test/mcp.json', representativeQueries: ['find shoes', 'find shirts'],
};
const without = (object, ...names) => Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
const catalog = (more) => ({specVersion: '1.0', entries: [{...entry, ...more}]});
const values = [null, true, 0, 1, '', 'text', [], ['text'], [1], {}, {a: 1}, {a: {}}, {identity: 'x'}, {identity: ''}];
for (const member of ['specVersion', 'host', 'entries', 'collections', '$schema', 'updatedAt']) {
  for (const value of values) await addCatalog({content: JSON.stringify({...catalog({}), [member]: value})});
}
for (const member of ['identifier', 'displayName', 'type', 'url', 'data', 'description', 'tags', 'capabilities',
  'representativeQueries', 'version', 'updatedAt', 'metadata', 'trustManifest', 'unknown']) {
  await addCatalog({content: JSON.stringify({specVersion: '1.0', entries: [without(entry, member)]})});
  for (const value of values) {
    await addCatalog({content: JSON.stringify(catalog({[member]: value}))});
    if (member === 'data') {
      await addCatalog({content: JSON.stringify({specVersion: '1.0', entries: [{...without(entry, 'url'), data: value}]})});
    }
  }
}
const uris = ['https://example.test', 'https://example.test/a%20b?c=d#e', 'http://[::1]:80/x', 'http://[::1', 'mailto:a@b.test', 'urn:x',
  'example.test/x', '//example.test/x', '/x', 'https:', 'https://', 'https:///x', 'https:/x', 'https://a b', 'https://a/%zz', 'https://é.test/',
  'https://u:p@example.test/', 'https://example.test:port/', '1x://a', 'a:b', 'https://a/#b#c', 'https://a/?b?c', 'https://a/<b>', 'https://a/"b"'];
for (const url of uris) await addCatalog({content: JSON.stringify(catalog({url}))});
const urns = ['urn:air:a:b', 'urn:air:a.test:b', 'urn:air:a:b:c:d', 'urn:air:a', 'urn:air::b', 'urn:air:a:', 'urn:air:a::b', 'urn:air:a_b:c',
  'urn:air:a:b_c', 'urn:ai:a:b', 'URN:AIR:a:b', ' urn:air:a:b', 'urn:air:a:b\n', 'urn:air:a:é', 'https://example.test'];
for (const identifier of urns) await addCatalog({content: JSON.stringify(catalog({identifier}))});
const times = ['2026-09-18T12:00:00Z', '2026-09-18t12:00:00z', '2026-09-18 12:00:00+02:00', '2026-09-18T12:00:00', '2026-09-18', '2026-02-29T12:00:00Z',
  '2024-02-29T12:00:00Z', '2026-13-01T12:00:00Z', '2026-09-31T12:00:00Z', '2026-09-18T24:00:00Z', '2026-09-18T12:60:00Z', '2026-09-18T23:59:60Z',
  '2026-09-18T12:59:60Z', '2026-09-18T00:59:60+01:00', '2026-09-18T12:00:00.123Z', '2026-09-18T12:00:00.Z', '2026-09-18T12:00Z', '2026-09-18T12:00:00+0200',
  '2026-09-18T12:00:00+02', '2026-09-18T12:00:00+02:', '2026-09-18T12:00:00+24:00', 'yesterday', '2026-09-18T12:00:00 Z'];
for (const updatedAt of times) await addCatalog({content: JSON.stringify(catalog({updatedAt}))});
const types = ['application/ai-catalog+json', 'application/agent-card+json', 'application/agent-skills+zip', 'application/ai-registry',
  'text/markdown; profile="urn:air:agent-skills"', 'text/markdown', 'application/json', 'APPLICATION/AI-REGISTRY'];
for (const type of types) await addCatalog({content: JSON.stringify(catalog({type}))});
for (let length = 0; length <= 7; length++) {
  await addCatalog({content: JSON.stringify(catalog({representativeQueries: Array(length).fill('find shoes')}))});
}
const trust = {identity: 'did:web:example.test'};
const trusts = [trust, {...trust, identityType: 'did'}, {...trust, identityType: 'dns'}, {...trust, other: 1}, {...trust, signature: 1}, {identity: 1},
  {...trust, trustSchema: {}}, {...trust, trustSchema: {identifier: 'a', version: '1'}}, {...trust, trustSchema: {identifier: 'a', version: '1', governanceUri: 'x'}},
  {...trust, trustSchema: {identifier: 'a', version: '1', verificationMethods: ['did']}}, {...trust, trustSchema: {identifier: 'a', version: '1', more: 1}},
  {...trust, attestations: []}, {...trust, attestations: [{}]}, {...trust, attestations: [{type: 'a', uri: 'https://a.test/', mediaType: 'b', digest: 'c'}]},
  {...trust, attestations: [{type: 'a', uri: 'b', mediaType: 'c'}]}, {...trust, provenance: [{relation: 'copiedFrom', sourceId: 'a'}]},
  {...trust, provenance: [{relation: 'from', sourceId: 'a'}]}, {...trust, provenance: {}}];
for (const trustManifest of trusts) {
  await addCatalog({content: JSON.stringify(catalog({trustManifest}))});
  await addCatalog({content: JSON.stringify({...catalog({}), host: {displayName: 'Shop', trustManifest}})});
}
for (const host of [{displayName: 'Shop'}, {displayName: ''}, {displayName: 1}, {displayName: 'Shop', logoUrl: 'x'}, {displayName: 'Shop', logoUrl: 'https://a.test/'},
  {displayName: 'Shop', more: 1}, {identifier: 'x'}]) {
  await addCatalog({content: JSON.stringify({...catalog({}), host})});
}
// Not `null` and no entries that are null: Lighthouse fails on them with an exception, and Plumbline reports an error.
for (const content of ['', ' ', '{', '[]', '"text"', '1', '<!doctype html>', `\ufeff${JSON.stringify(catalog({}))}`, `${JSON.stringify(catalog({}))} x`,
  JSON.stringify({specVersion: '1.0', entries: []}), JSON.stringify({specVersion: '1.0', entries: ['a']}), JSON.stringify({specVersion: '1.0', entries: [entry, {}]})]) {
  await addCatalog({content});
}
for (const foundBy of ['robotsTxt', 'linkElement', 'linkHeader', 'wellKnown']) {
  for (const status of [null, 200, 201, 204, 304, 404, 500]) await addCatalog({foundBy, status});
  await addCatalog({foundBy, status: 200, content: JSON.stringify(catalog({}))});
  await addCatalog({foundBy, status: 203, content: JSON.stringify(catalog({}))});
  await addCatalog({foundBy, status: null, error: 'Timed out fetching resource'});
}

const formCoverage = await load('webmcp-form-coverage.js');
const registeredTools = await load('webmcp-registered-tools.js');
const schemaValidity = await load('webmcp-schema-validity.js');
const KINDS = ['FormModelContextMissingToolName', 'FormModelContextMissingToolDescription', 'FormModelContextRequiredParameterMissingName',
  'FormModelContextParameterMissingTitleAndDescription', 'FormModelContextParameterMissingName'];
for (const isSupported of [true, false]) {
  for (const forms of [[], [['a', 'b']], [['a', null]], [[null, 'b']], [[null, null]], [['', '']], [['a', 'b'], [null, null]]]) {
    const artifacts = {
      Inputs: {forms: forms.map(([webMcpToolname, webMcpTooldescription]) => ({webMcpToolname, webMcpTooldescription, node: {}}))},
      WebMCP: {isSupported, tools: []},
    };
    const ours = {isSupported, forms: forms.map(([toolName, toolDescription]) => ({toolName, toolDescription}))};
    cases.push({check: 'webmcp-form-coverage', artifacts: {'web-mcp': ours}, verdict: await verdict(formCoverage, artifacts)});
  }
  for (const tools of [0, 1, 41]) {
    const artifacts = {WebMCP: {isSupported, tools: Array(tools).fill({name: 'a', description: 'b', inputSchema: {}})}};
    const ours = {isSupported, tools: Array(tools).fill({name: 'a'})};
    cases.push({check: 'webmcp-registered-tools', artifacts: {'web-mcp': ours}, verdict: await verdict(registeredTools, artifacts)});
    for (const kinds of [[], ...KINDS.map(kind => [kind]), [KINDS[4], KINDS[0]], [KINDS[3], KINDS[3]]]) {
      const details = kinds.map((errorType) => ({errorType, violatingNodeId: 1}));
      const withIssues = {...artifacts, WebMcpSchemaIssues: details};
      const issues = details.map((genericIssueDetails) => ({code: 'GenericIssue', details: {genericIssueDetails}}));
      cases.push({check: 'webmcp-schema-validity', artifacts: {'web-mcp': ours, issues}, verdict: await verdict(schemaValidity, withIssues)});
    }
  }
}
console.log(`[\n${cases.map((entry) => JSON.stringify(entry)).join(',\n')}\n]`);
