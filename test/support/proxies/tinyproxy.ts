// A real tinyproxy: a forward proxy, whose connections come from an address of its own.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'
import { freePort } from '../processes/ports.ts'
import { startProgram } from '../processes/program.ts'

export const tinyproxy = spawnSync('tinyproxy', ['-v']).status === 0

export const PROXY_ADDRESS = '127.0.0.9'

export async function startTinyproxy(t: Test, ...directives: string[]) {
  const folder = createFolder(t)
  const [port, file, logFile] = [await freePort(), join(folder, 'tinyproxy.conf'), join(folder, 'log')]
  const listener = [
    `Port ${port}`,
    'Listen 127.0.0.1',
    `Bind ${PROXY_ADDRESS}`,
    'Timeout 60',
    'MaxClients 100',
  ]
  const log = [`LogFile "${logFile}"`, 'LogLevel Connect']
  const configure = (more: string[]) => writeFileSync(file, [...listener, ...log, ...more, ''].join('\n'))
  configure(directives)
  const { child, ended, waitForPort } = startProgram(t, 'tinyproxy', ['-d', '-c', file])
  await waitForPort(port)
  const stop = () => {
    child.kill('SIGKILL')
    return ended
  }
  /** The requests that it got, such as `CONNECT example.com:443`. */
  const requests = () =>
    [...readFileSync(logFile, 'utf8').matchAll(/Request \(file descriptor \d+\): (\S+ \S+)/g)].map(
      ([, request = '']) => request,
    )
  /** Uses other directives for the requests that follow. */
  const reload = (...others: string[]) => {
    configure(others)
    child.kill('SIGUSR1')
  }
  return { port, stop, reload, requests }
}
