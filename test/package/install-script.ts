// Runs /install.sh of a server with only some programs on the PATH.
import { execFileSync, spawnSync } from 'node:child_process'
import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { type Plane, startPlane } from '../support/edges/tunnels.ts'

const TOOLS = [
  'uname',
  'sed',
  'mktemp',
  'rm',
  'mv',
  'ln',
  'mkdir',
  'chmod',
  'cut',
  'tar',
  'gzip',
  'env',
  'curl',
  'sha256sum',
]

export const which = (name: string) =>
  execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()

/** A PATH with the tools that the script needs, and these shell scripts; undefined removes a tool. */
export function createPath(t: Test, programs: Record<string, string | undefined> = {}): string {
  const folder = createFolder(t)
  for (const name of TOOLS) symlinkSync(which(name), join(folder, name))
  for (const [name, text] of Object.entries(programs)) {
    rmSync(join(folder, name), { force: true })
    if (text) writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  }
  return folder
}

/** As users run it, except for the PATH: `curl -fsSL <url>/install.sh | sh`. */
export function install(url: string, home: string | undefined, path: string, shell = ['dash']) {
  const script = execFileSync('curl', ['-fsSL', `${url}/install.sh`], { encoding: 'utf8' })
  const [program = '', ...args] = shell
  const env = { PATH: path, ...(home !== undefined && { HOME: home }) }
  return spawnSync(which(program), args, { input: script, env, encoding: 'utf8' })
}

export const nodeLauncher = `exec ${process.execPath} "$@"`

export async function startWithExecutables(t: Test, files: Record<string, Buffer>): Promise<Plane> {
  const folder = createFolder(t)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return startPlane(t, ['acme'], { ADIT_EXECUTABLES: folder })
}
