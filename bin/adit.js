#!/usr/bin/env node
// Plain JavaScript on purpose: it must run on any Node, to say in one line that a Node is too old.
import { existsSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const [major] = process.versions.node.split('.')
if (Number(major) < 24) {
  process.stderr.write(
    `adit needs Node 24 or later, this is ${process.version}. ` +
      'In a clone, "npm ci" installs a newer one, which "npm start" then uses.\n',
  )
  process.exit(1)
}
// Compiled once, later starts take two thirds of the time. Kept beside the code, never in the shared folder for
// temporary files: whoever can write to this cache can run what they like.
module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/adit', import.meta.url)))
// A package that was installed has no sources: Node strips no types there.
const source = new URL('../src/main.ts', import.meta.url)
const { main } = await import(existsSync(source) && !(await isBuilt()) ? source.href : '../dist/main.js')
process.exitCode = await main(process.argv.slice(2))

/** Whether dist was made from exactly the sources that are here. */
async function isBuilt() {
  const { isBundleCurrent } = await import('../scripts/bundled.js')
  return isBundleCurrent()
}
