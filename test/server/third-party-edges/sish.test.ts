// A real sish with the command that the documents show.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { addEdge, addWorkspace, serve } from '../../support/api/server.ts'
import { createFolder } from '../../support/databases/create.ts'
import { requestStatus, startApplication } from '../../support/edges/frp.ts'
import { freePort } from '../../support/processes/ports.ts'
import { root } from '../../support/processes/process.ts'
import { replaceShown, startProgram } from '../../support/processes/program.ts'

const isInstalled = spawnSync('sish', ['--version']).status === 0 && spawnSync('ssh', ['-V']).status === 0

/** The flags of the command in the document, with other values. */
function documentedFlags(replacements: Record<string, string>): string[] {
  const document = readFileSync(join(root, 'docs/edges/sish.md'), 'utf8')
  const [, flags = ''] = /antoniomika\/sish:latest (.*?)```/s.exec(document) ?? []
  return replaceShown(flags, replacements)
    .split(/[\s\\]+/)
    .filter((flag) => flag !== '')
}

test('sish serves the tunnel of a valid key under the tunnel domain of its workspace', async (t) => {
  if (!isInstalled) return t.skip('sish and ssh are not installed here')
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server, 'sish-1')
  await addWorkspace(server, 'other')
  const folder = createFolder(t)
  mkdirSync(join(folder, 'deploy/pubkeys'), { recursive: true })
  const [sshPort, httpPort, localPort] = [await freePort(), await freePort(), await startApplication(t)]
  const domain = server.services.tunnelDomain
  const flags = documentedFlags({
    ':2222': `127.0.0.1:${sshPort}`,
    '=:80': `=127.0.0.1:${httpPort}`,
    'tunnels.example.com': domain,
    '/keys': `${folder}/deploy`,
    'https://adit.example.com': server.url,
    'adit_edge_…': edge.token,
  })
  const sish = startProgram(t, 'sish', [...flags, '--load-templates=false'], { cwd: folder })
  await sish.waitForPort(sshPort)

  const askpass = join(folder, 'askpass')
  writeFileSync(askpass, '#!/bin/sh\necho "$PASSWORD"\n')
  chmodSync(askpass, 0o700)
  const ssh = (user: string, password: string, forward: string) => {
    const options = ['PubkeyAuthentication=no', 'StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null']
    const args = [...options, 'NumberOfPasswordPrompts=1'].flatMap((option) => ['-o', option])
    const env = { PATH: process.env.PATH, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force' }
    return startProgram(t, 'ssh', [...args, '-p', `${sshPort}`, '-R', forward, `${user}@127.0.0.1`], {
      env: { ...env, PASSWORD: password },
    })
  }
  const local = `localhost:${localPort}`
  for (const [user, password] of [
    ['other', server.key.token],
    ['root', server.key.token],
    ['acme', 'wrong'],
  ] as const) {
    const rejected = ssh(user, password, `my-app:80:${local}`)
    await rejected.waitFor(/Permission denied/)
    await rejected.ended
  }
  await ssh('acme', server.key.token, `my-app:80:${local}`).waitFor(/http:\/\/my-app\.acme\./)
  assert.equal(await requestStatus(httpPort, `my-app.acme.${domain}`), 200)
  await ssh('acme', server.key.token, `x.other:80:${local}`).waitFor(/http:\/\/x\.other\.acme\./)
  assert.equal(await requestStatus(httpPort, `x.other.${domain}`), 404)
})
