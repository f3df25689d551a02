// Real frps and frpc, from the PATH, with the configurations of docs/edges/frp.md.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import { join } from 'node:path'
import type { Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'
import { listen } from '../network/listen.ts'
import { freePort } from '../processes/ports.ts'
import { root } from '../processes/process.ts'
import { type Program, replaceShown, startProgram } from '../processes/program.ts'

export const hasFrp = ['frps', 'frpc'].every((name) => spawnSync(name, ['--version']).status === 0)
export const WITHOUT_FRP = 'frps and frpc are not installed here'

/** The block of the document that has this line, with other values. */
function documented(line: string, replacements: Record<string, string>): string {
  const document = readFileSync(join(root, 'docs/edges/frp.md'), 'utf8')
  const blocks = [...document.matchAll(/```toml\n(.*?)```/gs)].map(([, block = '']) => block)
  return replaceShown(blocks.find((block) => block.includes(line)) ?? '', replacements)
}

function start(t: Test, name: 'frps' | 'frpc', configuration: string): Program {
  const file = join(createFolder(t), `${name}.toml`)
  writeFileSync(file, `log.disablePrintColor = true\n${configuration}`)
  return startProgram(t, name, ['-c', file])
}

interface FrpServer {
  port: number
  /** The status of a request to a host name. */
  status(host: string): Promise<number>
}

export async function startFrps(t: Test, plugin: Record<string, string>): Promise<FrpServer> {
  const port = await freePort()
  const vhostPort = await freePort()
  const frps = start(
    t,
    'frps',
    documented('bindPort', {
      'bindPort = 7000': `bindAddr = "127.0.0.1"\nbindPort = ${port}`,
      '8081': `${vhostPort}`,
      ...plugin,
    }),
  )
  await frps.waitFor(/frps started successfully/)
  return {
    port,
    status: (host) => requestStatus(vhostPort, host),
  }
}

export const requestStatus = (port: number, host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', headers: { host }, agent: false }
    get(options, (response) => resolve(response.resume().statusCode ?? 0)).on('error', reject)
  })

interface FrpClientOptions {
  frps: FrpServer
  key: string
  localPort: number
  /** Further replacements, by what the document shows. */
  replacements?: Record<string, string>
}

/** Heartbeats every second, so that tests are short. */
export const startFrpc = (t: Test, { frps, key, localPort, replacements }: FrpClientOptions): Program =>
  start(
    t,
    'frpc',
    documented('serverAddr', {
      'frp.example.com': '127.0.0.1',
      '7000': `${frps.port}`,
      '3000': `${localPort}`,
      'adit_…': key,
      'heartbeatInterval = 10': 'heartbeatInterval = 1',
      ...replacements,
    }),
  )

export async function startApplication(t: Test): Promise<number> {
  return listen(
    t,
    createServer((_request, response) => response.end('hello')),
  )
}
