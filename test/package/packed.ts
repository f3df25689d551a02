// Packs what was built and installs a tarball into an empty project.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packAll } from '../../scripts/pack.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'

export interface Project {
  readonly folder: string
  /** Writes a file of the project and returns its path. */
  write(name: string, text: string): string
}

/** Packs all packages. The result installs one of them, with options for npm such as `--offline`. */
export function pack(t: Test) {
  const packed = packAll(createFolder(t))
  return (test: Test, name: string, ...options: string[]): Project => {
    const folder = createFolder(test)
    const write = (file: string, text: string) => {
      writeFileSync(join(folder, file), text)
      return join(folder, file)
    }
    write('package.json', '{ "name": "project", "private": true, "type": "module" }')
    const { file = '' } = packed.find((one) => one.name === name) ?? {}
    const args = ['install', file, '--no-audit', '--no-fund', '--loglevel=error', ...options]
    execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    return { folder, write }
  }
}
