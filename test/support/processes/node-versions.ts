// Other versions of Node, from npm.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createFolder } from '../databases/create.ts'
import { npm } from './npm.ts'

/** The path of the program; undefined without a registry, or if it does not have this version. */
export function installNode(t: TestContext, version: string): string | undefined {
  if (process.platform !== 'linux') return undefined
  const folder = createFolder(t)
  const pack = ['pack', `node-linux-${process.arch}@${version}`, '--silent', '--pack-destination', folder]
  try {
    const file = npm(pack, folder).trim()
    execFileSync('tar', ['-xzf', join(folder, file), '-C', folder])
    return join(folder, 'package/bin/node')
  } catch (error) {
    t.diagnostic(String(error))
  }
}
