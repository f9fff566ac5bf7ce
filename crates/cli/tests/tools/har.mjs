// har.mjs FILE.har: fails if the file is not an HTTP Archive 1.2.
import {readFileSync} from 'node:fs';
import {requireModule} from './modules.mjs';

const {har} = requireModule('har-validator/lib/promise.js');
const archive = JSON.parse(readFileSync(process.argv[2], 'utf8'));
try {
  await har(archive);
} catch (error) {
  console.error(error.message, JSON.stringify(error.errors));
  process.exit(1);
}
console.log(archive.log.entries.length);
