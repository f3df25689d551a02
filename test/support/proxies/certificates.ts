import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'

/**
 * Files with a self-signed certificate and its key, for names such as `DNS:example.com`. Undefined if openssl
 * is not installed.
 */
export function makeCertificate(t: Test, ...names: string[]) {
  const folder = createFolder(t)
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const { status } = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=test'],
    ...['-addext', `subjectAltName=${names.join()}`, '-keyout', key, '-out', certificate],
  ])
  return status === 0 ? { key, certificate } : undefined
}
