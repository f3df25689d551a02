// A real nginx, with a configuration from the documentation or of a test.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, type Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'
import { isListening } from '../processes/ports.ts'
import { root } from '../processes/process.ts'
import { replaceShown } from '../processes/program.ts'
import { until } from '../until.ts'

/** Undefined if it is not installed. */
export const nginx = ['nginx', '/usr/sbin/nginx'].find((path) => spawnSync(path, ['-v']).status === 0)

/** Replaces the example's addresses and paths. */
export const startNginx = (t: Test, port: number, file: string, replacements: Record<string, string>) =>
  runNginx(t, port, replaceShown(readFileSync(join(root, file), 'utf8'), replacements))

export async function runNginx(t: Test, port: number, shown: string): Promise<void> {
  const folder = createFolder(t)
  // Writable without root.
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const configuration = shown.replace('http {', `http { access_log off; ${places.join(' ')}`)
  writeFileSync(join(folder, 'nginx.conf'), configuration)
  const user = process.getuid?.() === 0 ? ' user root;' : ''
  const directives = `daemon off; pid ${folder}/nginx.pid; error_log stderr;${user}`
  const child = spawn(nginx as string, ['-p', folder, '-c', join(folder, 'nginx.conf'), '-g', directives], {
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  atEnd(t, () => {
    child.kill('SIGTERM')
    return ended
  })
  await until('nginx serves', () => {
    assert.equal(child.exitCode, null, 'nginx did not start')
    return isListening(port)
  })
}
