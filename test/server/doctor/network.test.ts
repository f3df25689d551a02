// Checks of `adit admin doctor` against real servers: DNS, mail, identity provider.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { checkDns, checkMail, checkOidc } from '../../../src/server/doctor/network.ts'
import { startHostileProvider } from '../../support/accounts/hostile-provider.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { startDnsServer } from '../../support/network/dns-server.ts'
import { listen } from '../../support/network/listen.ts'
import { pluck } from '../../support/pluck.ts'
import { freePort } from '../../support/processes/ports.ts'
import { makeCertificate } from '../../support/proxies/certificates.ts'

const domain = 'tunnels.example.com'
const label = 'probe'

test('dns: the tunnel domain and its wildcard must have an address', async (t) => {
  const records: Record<string, string[] | 'failed'> = { [domain]: ['192.0.2.7'] }
  const resolver = await startDnsServer(t, (name) =>
    name === domain ? records[domain] : records[`*.${name.split('.').slice(-3).join('.')}`],
  )
  const check = async () =>
    (await checkDns({ domain, resolver, label })).map(({ status, message }) => `${status}: ${message}`)
  assert.deepEqual(await check(), [
    'ok: tunnels.example.com resolves to 192.0.2.7',
    'problem: *.tunnels.example.com has no address.',
  ])
  records[`*.${domain}`] = ['192.0.2.7', '192.0.2.8']
  assert.equal((await check())[1], 'ok: *.tunnels.example.com resolves to 192.0.2.7, 192.0.2.8')
  records[domain] = 'failed'
  assert.match((await check())[0] ?? '', /^warning: tunnels\.example\.com cannot be resolved: .*ESERVFAIL/)
  const local = await checkDns({ domain: 'localhost', resolver, label })
  assert.equal(local[0]?.status, 'skipped')
})

test('dns: a server that does not respond is a warning, as the record may exist', async (t) => {
  const resolver = await startDnsServer(t, () => undefined)
  resolver.setServers([`127.0.0.1:${await freePort()}`])
  const findings = await checkDns({ domain, resolver, label })
  assert.deepEqual(pluck(findings, 'status'), ['warning', 'warning'])
})

async function startSmtp(t: Test, options: SMTPServerOptions) {
  let recipients = 0
  const server = new SMTPServer({
    ...options,
    onRcptTo(_address, _session, done) {
      recipients += 1
      done()
    },
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  atEnd(t, () => new Promise<void>((resolve) => server.close(resolve)))
  const { port } = server.server.address() as AddressInfo
  return { port, recipients: () => recipients }
}

const mailAt = (port: number, login = '') =>
  checkMail({ url: `smtp://${login}127.0.0.1:${port}`, from: 'Adit <adit@example.com>' })

test('mail: a server that accepts the login is fine, and gets no email', async (t) => {
  const server = await startSmtp(t, {
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) =>
      password === 'right' ? done(null, { user: username }) : done(new Error('Invalid login')),
  })
  const fine = await mailAt(server.port, 'adit:right@')
  assert.deepEqual(fine, {
    status: 'ok',
    message: `127.0.0.1:${server.port} accepts connections and the login`,
  })
  const withoutLogin = await mailAt(server.port)
  assert.equal(withoutLogin.message, `127.0.0.1:${server.port} accepts connections`)
  const wrong = await mailAt(server.port, 'adit:wrong@')
  assert.equal(wrong.status, 'problem')
  assert.match(wrong.remedy ?? '', /user and password in ADIT_SMTP_URL/)
  assert.doesNotMatch(JSON.stringify(wrong), /wrong/)
  assert.equal(server.recipients(), 0)
})

test('mail: a closed port, a server that refuses or is none, and an untrusted certificate are problems', async (t) => {
  const closed = await mailAt(await freePort())
  assert.match(closed.message, /^Mail cannot be sent through 127\.0\.0\.1:\d+: .*ECONNREFUSED/)
  assert.match(closed.remedy ?? '', /host and port in ADIT_SMTP_URL/)

  const refusing = createServer((socket) => socket.end('554 no service here\r\n'))
  const refused = await mailAt(await listen(t, refusing))
  assert.equal(refused.status, 'problem')
  assert.match(refused.message, /554 no service here/)

  const plain = await startSmtp(t, { authOptional: true, disabledCommands: ['STARTTLS'] })
  const withTls = await checkMail({ url: `smtps://127.0.0.1:${plain.port}`, from: 'adit@example.com' })
  assert.equal(
    withTls.message,
    `Mail cannot be sent through 127.0.0.1:${plain.port}: the server does not use TLS from the start.`,
  )
  assert.match(withTls.remedy ?? '', /smtps:\/\/ uses TLS from the start/)

  const files = makeCertificate(t, 'DNS:mail.example.com')
  if (!files) return t.diagnostic('openssl is not installed')
  const certificate = { key: readFileSync(files.key), cert: readFileSync(files.certificate) }
  const untrusted = await mailAt((await startSmtp(t, { authOptional: true, ...certificate })).port)
  assert.equal(untrusted.status, 'problem')
  assert.match(untrusted.remedy ?? '', /certificate of the mail server/)
  assert.equal((await checkMail(undefined)).status, 'skipped')
  assert.equal(
    (await checkMail({ from: 'adit@example.com' })).message,
    'ADIT_SMTP_URL is missing or invalid.',
  )
})

test('oidc: discovery document and signing keys are read, and each failure is a problem', async (t) => {
  const provider = await startHostileProvider(t)
  const sso = (issuer: string) => checkOidc({ issuer, clientId: 'a', clientSecret: 'b', linkByEmail: false })
  assert.equal((await sso(provider.issuer)).status, 'ok')

  provider.behave({ discovery: { issuer: 'https://other.example.com' } })
  assert.match((await sso(provider.issuer)).message, /names another issuer: https:\/\/other\.example\.com\. /)
  provider.behave({ discovery: {} })
  provider.publishKeys()
  assert.match((await sso(provider.issuer)).message, /\/jwks has no signing keys/)
  provider.behave({ discovery: { jwks_uri: `${provider.issuer}/missing` } })
  assert.match(
    (await sso(provider.issuer)).message,
    /^Single sign-on with .* fails: \/missing returned status 404/,
  )
  assert.match((await sso(`${provider.issuer}/realm`)).message, /returned status 404/)
  const closed = await sso(`http://127.0.0.1:${await freePort()}`)
  assert.equal(closed.status, 'problem')
  assert.match(closed.message, /ECONNREFUSED/)
  assert.match(closed.remedy ?? '', /ADIT_OIDC_ISSUER/)
  assert.equal((await checkOidc(undefined)).status, 'skipped')
  assert.equal((await checkOidc({ clientId: 'a' })).message, 'ADIT_OIDC_ISSUER is missing or invalid.')
})
