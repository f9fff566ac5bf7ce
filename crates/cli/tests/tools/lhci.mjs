// lhci.mjs: reads [{options, runs}] on standard input; prints the median run of Lighthouse CI and the
// results of its assertions for each.
import {readFileSync} from 'node:fs';
import {requireModule} from './modules.mjs';

const {computeRepresentativeRuns} = requireModule('@lhci/utils/src/representative-runs.js');
const {getAllAssertionResults} = requireModule('@lhci/utils/src/assertions.js');
const {convertBudgetsToAssertions} = requireModule('@lhci/utils/src/budgets-converter.js');

const outputs = [];
for (const {options, runs} of JSON.parse(readFileSync(0, 'utf8'))) {
  const [median] = computeRepresentativeRuns([runs.map((run, index) => [index, run])]);
  let results = [];
  if (options) {
    const assertions = Array.isArray(options) ? await convertBudgetsToAssertions(options) : options;
    results = getAllAssertionResults({...assertions, includePassedAssertions: true}, runs);
  }
  outputs.push({
    median,
    results: results.map(result => ({
      audit: result.auditId,
      property: result.auditProperty ?? null,
      name: result.name,
      level: result.level,
      expected: result.expected,
      actual: Number.isFinite(result.actual) ? result.actual : null,
      passed: result.passed,
    })),
  });
}
console.log(JSON.stringify(outputs));
