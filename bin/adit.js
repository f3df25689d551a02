#!/usr/bin/env node
// Plain JavaScript: it must run on any Node, to report one that is too old.
import { existsSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const [major, minor] = process.versions.node.split('.').map(Number)
// Earlier versions ignore shouldUpgradeCallback, by which servers reject upgrades.
if (major < 24 || (major === 24 && minor < 9)) {
  process.stderr.write(
    `adit needs Node 24.9 or later, but this is ${process.version}. ` +
      'In a clone, `npm ci` installs a newer one: run `node_modules/.bin/node bin/adit.js`, or `npm start`.\n',
  )
  process.exit(1)
}
// With compiled code cached, later starts take two thirds of the time. The cache is next to the code and not
// in a shared temporary folder: write access to it is the ability to run code.
module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/adit', import.meta.url)))
// An installed package has no sources, because Node does not strip types in node_modules.
const source = new URL('../src/main.ts', import.meta.url)
const { main } = await import(existsSync(source) && !(await isBuilt()) ? source.href : '../dist/main.js')
process.exitCode = await main(process.argv.slice(2))

/** Whether dist was built from the current sources. */
async function isBuilt() {
  const { isBundleCurrent } = await import('../scripts/bundled.js')
  return isBundleCurrent()
}
