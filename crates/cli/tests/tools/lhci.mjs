// lhci.mjs: reads [{options, runs}] on standard input; prints, for each, which run Lighthouse CI
// takes for all, and what its assertions find.
import {readFileSync} from 'node:fs';
import {requireModule} from './modules.mjs';

const {computeRepresentativeRuns} = requireModule('@lhci/utils/src/representative-runs.js');
const {getAllAssertionResults} = requireModule('@lhci/utils/src/assertions.js');
const {convertBudgetsToAssertions} = requireModule('@lhci/utils/src/budgets-converter.js');

const answers = [];
for (const {options, runs} of JSON.parse(readFileSync(0, 'utf8'))) {
  const [median] = computeRepresentativeRuns([runs.map((run, at) => [at, run])]);
  let results = [];
  if (options) {
    const asked = Array.isArray(options) ? await convertBudgetsToAssertions(options) : options;
    results = getAllAssertionResults({...asked, includePassedAssertions: true}, runs);
  }
  answers.push({
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
console.log(JSON.stringify(answers));
