// Connections to a real PostgreSQL with TLS and a private CA.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import { atEnd } from '../../../support/cleanup.ts'
import { createFolder } from '../../../support/databases/create.ts'
import { createCluster, handOver } from '../../../support/databases/postgres.ts'
import { makeCertificate } from '../../../support/proxies/certificates.ts'
import { failOpen, open } from './open.ts'

test('sslmode=verify-full accepts only a certificate that the CA issued for the host name, and errors say what to set', async (t) => {
  const ca = makeCertificate(t, 'DNS:ca.example.com')
  const otherCa = makeCertificate(t, 'DNS:ca.example.com')
  if (!ca || !otherCa) return t.skip('openssl is not installed')
  const folder = createFolder(t)
  const [key, certificate, hba] = [join(folder, 'key'), join(folder, 'certificate'), join(folder, 'hba')]
  spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=postgres'],
    ...['-CA', ca.certificate, '-CAkey', ca.key, '-addext', 'basicConstraints=critical,CA:FALSE'],
    ...['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate],
  ])
  writeFileSync(hba, 'hostssl all ann all scram-sha-256\nhostssl all all all trust\n')
  chmodSync(folder, 0o755)
  for (const file of [key, certificate, hba]) handOver(file)
  const settings = [`ssl_cert_file=${certificate}`, `ssl_key_file=${key}`, `hba_file=${hba}`]
  const cluster = await createCluster(['ssl=on', ...settings, 'fsync=off'])
  atEnd(t, () => cluster.remove())
  await cluster.start()

  const address = `${cluster.url}/postgres`
  const named = address.replace('127.0.0.1', 'localhost')
  const verified = '?sslmode=verify-full&sslrootcert='
  const { store } = await open(`${named}${verified}${ca.certificate}`)
  const { rows } = await sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`.execute(store.db)
  await store.close()
  assert.deepEqual(rows, [{ ssl: true }])

  assert.match(
    await failOpen(`${address}${verified}${ca.certificate}`),
    /not in the cert's list.* Use a host name of the certificate in ADIT_DATABASE_URL/,
  )
  for (const url of [`${named}${verified}${otherCa.certificate}`, `${named}?sslmode=verify-full`])
    assert.match(await failOpen(url), /certificate.* Add sslrootcert=<file .* CA> to ADIT_DATABASE_URL\.$/)
  assert.match(
    await failOpen(`${named}${verified}/missing/ca.pem`),
    /ENOENT.*\/missing\/ca\.pem.* Correct the path in ADIT_DATABASE_URL/,
  )
  const ann = named.replace('adit@', 'ann@')
  assert.match(
    await failOpen(`${ann}${verified}${ca.certificate}`),
    /password must be a string\. Set PGPASSWORD, or add the password to ADIT_DATABASE_URL\.$/,
  )
  assert.match(await failOpen(address), /no encryption\. If the server requires TLS, add sslmode=verify-full/)
})

test('sslmode=verify-full does not fall back to a connection without TLS', async () => {
  const url = new URL(process.env.TEST_POSTGRES_URL as string)
  url.search = 'sslmode=verify-full'
  assert.match(await failOpen(url.href), /does not support SSL connections\. Set ssl = on at the server/)
})
