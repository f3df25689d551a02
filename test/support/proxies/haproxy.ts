// A real HAProxy, with the configuration from the documentation.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'
import { root } from '../processes/process.ts'
import { replaceShown, startProgram } from '../processes/program.ts'

/** Undefined if it is not installed. */
export const haproxy = ['haproxy', '/usr/sbin/haproxy'].find((path) => spawnSync(path, ['-v']).status === 0)

/** Replaces the example's addresses and paths. */
export async function startHaproxy(
  t: Test,
  port: number,
  file: string,
  replacements: Record<string, string>,
): Promise<void> {
  const configuration = join(createFolder(t), 'haproxy.cfg')
  writeFileSync(configuration, replaceShown(readFileSync(join(root, file), 'utf8'), replacements))
  await startProgram(t, haproxy as string, ['-db', '-f', configuration]).waitForPort(port)
}
