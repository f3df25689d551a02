#!/usr/bin/env node
// Plain JavaScript on purpose: it must run on any Node, to say in one line that a Node is too old.
import module from 'node:module'

const [major] = process.versions.node.split('.')
if (Number(major) < 24) {
  process.stderr.write(
    `adit needs Node 24 or later, this is ${process.version}. ` +
      'In a clone, run it as "npx adit …" or "npm start": these use the Node that "npm ci" installed.\n',
  )
  process.exit(1)
}
// Compiled once, kept in the system's folder for temporary files: later starts take two thirds of the time.
module.enableCompileCache()
const { main } = await import('../src/main.ts')
process.exitCode = await main(process.argv.slice(2))
