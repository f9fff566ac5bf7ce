// Packages are in PLUMBLINE_TEST_MODULES, not next to these files.
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

const modules = process.env.PLUMBLINE_TEST_MODULES;

export const fromModules = file => import(pathToFileURL(join(modules, file)).href);
export const requireModule = createRequire(join(modules, 'here.js'));
