// render.mjs RESULT.json OUT.html: writes Lighthouse's report page of a result.
import {readFileSync, writeFileSync} from 'node:fs';
import {fromModules} from './modules.mjs';

const {ReportGenerator} = await fromModules('lighthouse/report/generator/report-generator.js');
const [, , resultFile, htmlFile] = process.argv;
const result = JSON.parse(readFileSync(resultFile, 'utf8'));
writeFileSync(htmlFile, ReportGenerator.generateReport(result, 'html'));
// The CSV of Lighthouse itself, for comparison.
process.stdout.write(ReportGenerator.generateReport(result, 'csv'));
