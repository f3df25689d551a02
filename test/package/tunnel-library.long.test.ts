// The examples of docs/tunnel-library.md, with the packed library.
import assert from 'node:assert/strict'
import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Test } from '../support/cleanup.ts'
import { fetchHost, newKey, startPlane, startTunnelEdge } from '../support/edges/tunnels.ts'
import { installNode } from '../support/processes/node-versions.ts'
import { npmCi } from '../support/processes/npm.ts'
import { root } from '../support/processes/process.ts'
import { startProgram } from '../support/processes/program.ts'
import { pack } from './packed.ts'

const CHROMIUM = '/usr/bin/chromium'
const project = pack({ after: after as Test['after'] }).install(['adit-tunnel'], '--offline')

function writeExample(title: string): string {
  const [, section = ''] = readFileSync(join(root, 'docs/tunnel-library.md'), 'utf8').split(`## ${title}\n`)
  const [, code] = /^```ts\n(.*?)^```/ms.exec(section) ?? []
  assert.ok(code, title)
  return project.write(`${title.replace(' ', '-')}.js`, code)
}

async function startEdge(t: Test) {
  const plane = await startPlane(t, ['acme'])
  const edge = await startTunnelEdge(t, { plane })
  const [{ id }] = JSON.parse(await plane.admin('edge', 'list', '--json'))
  await plane.admin('edge', 'set-url', id, edge.url)
  const env = { ADIT_URL: plane.url, ADIT_API_KEY: await newKey(plane, 'acme'), HOME: project.folder }
  return { edge, env }
}

test('the example with Express runs, on the first Node 20', async (t) => {
  const node = installNode(t, '20.0.0') ?? process.execPath
  const { edge, env } = await startEdge(t)
  const express = join(project.folder, 'express')
  cpSync(join(root, 'test/package/express'), express, { recursive: true })
  npmCi(express)
  symlinkSync(join(express, 'node_modules/express'), join(project.folder, 'node_modules/express'))
  const program = startProgram(t, node, [writeExample('With Express')], { env })
  await program.waitFor(/^http:\/\/\S+$/m)
  const [url = ''] = program.output().match(/^http:\/\/\S+$/m) ?? []
  const { host } = new URL(url)
  const { status, body } = await fetchHost(edge, host, { path: '/' })
  assert.deepEqual([status, String(body)], [200, `Hello from ${new URL(url).hostname}`])
  await program.waitFor(/^GET \/ 200$/m)
  program.child.kill('SIGTERM')
  assert.deepEqual(await program.ended, [0, null])
})

test('the example with Playwright runs', { skip: !existsSync(CHROMIUM) && 'no Chromium' }, async (t) => {
  const { env } = await startEdge(t)
  symlinkSync(
    join(root, 'node_modules/playwright-core'),
    join(project.folder, 'node_modules/playwright-core'),
  )
  const program = startProgram(t, process.execPath, [writeExample('With Playwright')], { env })
  await program.waitFor(/^It works$/m)
  assert.deepEqual(await program.ended, [0, null], program.output())
})
