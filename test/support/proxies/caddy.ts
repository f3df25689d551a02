// A real Caddy with deploy/Caddyfile, and a real ACME server (pebble) that validates its challenges. Both are
// packages of Debian: `apt-get install caddy pebble`.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'
import { freePort } from '../processes/ports.ts'
import { root } from '../processes/process.ts'
import { startProgram } from '../processes/program.ts'
import { makeCertificate } from './certificates.ts'

const isInstalled = (program: string) => !spawnSync(program, ['--help']).error

/** Enough for certificates of Caddy's own CA. */
export const hasCaddy = isInstalled('caddy')
/** Undefined if all of it is installed. */
export const caddyMissing = ['caddy', 'pebble', 'pebble-challtestsrv', 'openssl'].every(isInstalled)
  ? undefined
  : 'caddy, pebble or openssl is not installed here (apt-get install caddy pebble openssl)'

interface CaddyPorts {
  httpPort: number
  httpsPort: number
}

export interface Acme extends CaddyPorts {
  directory: string
  /** The certificate of its own HTTPS server. */
  serverCa: string
  /** File with the root of the certificates that it issues. */
  rootFile: string
  root: string
}

const start = (t: Test, program: string, args: string[], env: Record<string, string> = {}) =>
  startProgram(t, program, args, { env: { PATH: process.env.PATH, ...env } })

/** All names resolve to this machine, where Caddy has the ports of HTTP and HTTPS. */
export async function startAcme(t: Test): Promise<Acme> {
  const folder = createFolder(t)
  const [port, management, dns, httpPort, httpsPort] = await Promise.all(Array.from({ length: 5 }, freePort))
  const file = (name: string) => join(folder, name)
  const files = makeCertificate(t, 'IP:127.0.0.1')
  assert.ok(files)
  const { certificate, key: privateKey } = files
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    ...{ certificate, privateKey, httpPort, tlsPort: httpsPort },
  }
  writeFileSync(file('pebble.json'), JSON.stringify({ pebble }))
  const disabled = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-management', '', '-defaultIPv6', '']
  const resolver = start(t, 'pebble-challtestsrv', ['-dns01', `127.0.0.1:${dns}`, ...disabled])
  const acme = start(t, 'pebble', ['-config', file('pebble.json'), '-dnsserver', `127.0.0.1:${dns}`], {
    PEBBLE_VA_NOSLEEP: '1',
  })
  await resolver.waitForPort(dns as number)
  await acme.waitForPort(management as number)
  const sent = request({
    host: '127.0.0.1',
    port: management,
    path: '/roots/0',
    ca: readFileSync(certificate),
  })
  sent.end()
  const [response] = await once(sent, 'response')
  const rootCertificate = await text(response)
  writeFileSync(file('root.pem'), rootCertificate)
  return {
    directory: `https://127.0.0.1:${port}/dir`,
    serverCa: certificate,
    rootFile: file('root.pem'),
    root: rootCertificate,
    httpPort: httpPort as number,
    httpsPort: httpsPort as number,
  }
}

/**
 * Runs deploy/Caddyfile unchanged, on the given ports. Certificates come from the ACME server if there is
 * one, otherwise from Caddy's own CA.
 */
export async function startCaddy(t: Test, ca: Acme | CaddyPorts, env: Record<string, string>) {
  const folder = createFolder(t)
  const issuer =
    'directory' in ca
      ? [`acme_ca ${ca.directory}`, `acme_ca_root ${ca.serverCa}`]
      : ['local_certs', 'skip_install_trust']
  const options = [
    'admin off',
    `http_port ${ca.httpPort}`,
    `https_port ${ca.httpsPort}`,
    `storage file_system ${folder}`,
    ...issuer,
  ]
  const caddy = start(
    t,
    'caddy',
    ['run', '--config', join(root, 'deploy/Caddyfile'), '--adapter', 'caddyfile'],
    { HOME: folder, CADDY_GLOBAL_OPTIONS: options.join('\n'), ...env },
  )
  await caddy.waitForPort(ca.httpsPort)
  return {
    output: caddy.output,
    /** Hosts that have a certificate. */
    certificates: () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .flatMap((path) => /([^/]+)\.crt$/.exec(path)?.[1] ?? [])
        .toSorted(),
  }
}
