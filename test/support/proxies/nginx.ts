// A real nginx, with a configuration from the documentation or of a test.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'
import { root } from '../processes/process.ts'
import { replaceShown, startProgram } from '../processes/program.ts'

/** Undefined if it is not installed. */
export const nginx = ['nginx', '/usr/sbin/nginx'].find((path) => spawnSync(path, ['-v']).status === 0)

/** Replaces the example's addresses and paths. */
export const startNginx = (t: Test, port: number, file: string, replacements: Record<string, string>) =>
  runNginx(t, port, replaceShown(readFileSync(join(root, file), 'utf8'), replacements))

export async function runNginx(t: Test, port: number, shown: string): Promise<void> {
  const folder = createFolder(t)
  // The default folders are writable by root only.
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const configuration = shown.replace('http {', `http { access_log off; ${folders.join(' ')}`)
  writeFileSync(join(folder, 'nginx.conf'), configuration)
  const user = process.getuid?.() === 0 ? ' user root;' : ''
  const directives = `daemon off; pid ${folder}/nginx.pid; error_log stderr;${user}`
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-g', directives]
  // A group, since killing its master alone leaves the workers.
  await startProgram(t, nginx as string, args, { detached: true }).waitForPort(port)
}
