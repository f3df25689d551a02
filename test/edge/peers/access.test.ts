// Access rules of tunnels at other edges: the entry edge decides, by the rules that are in force.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Agent, get, type IncomingMessage, request as sendRequest } from 'node:http'
import { after, test } from 'node:test'
import type { Tunnel } from '../../../src/edge/tunnels/tunnel.ts'
import { hashPassword } from '../../../src/lib/credentials/password-hash.ts'
import type { RequestedAccess } from '../../../src/tunnel-protocol/protocol.ts'
import { PeerEdges } from '../../support/edges/peer-edges.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { startRelay } from '../../support/network/relay.ts'
import { until } from '../../support/until.ts'

const basic = (credential: string) => `Basic ${Buffer.from(credential).toString('base64')}`
const passwordRule = async (password: string) => ({
  basicAuth: { user: 'ann', hash: await hashPassword(password, randomBytes, 'memory') },
  allowIp: [],
})
const DENY_ALL = { basicAuth: null, allowIp: ['192.0.2.1/32'] }

const cluster = await PeerEdges.create({ after })
const serving = await cluster.start('edge_serving')
const entry = await cluster.start('edge_entry')
/** Responses of the serving edge can be stalled on their way to the entry edge. */
const relay = await startRelay({ after }, `http://127.0.0.1:${serving.peerPort}`)
cluster.addresses.set('edge_serving', `127.0.0.1:${relay.port}`)

async function open(name: string, access: RequestedAccess = {}) {
  const tunnel = await openRawTunnel(serving, cluster.key, { name, access })
  after(() => tunnel.close())
  tunnel.respond('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  const { access: control } = serving.tunnels.get(name) as Tunnel
  const send = (credential?: string, address = '203.0.113.1', method = 'GET') =>
    fetchHost(entry, tunnel.host, {
      method,
      body: Buffer.from(method === 'POST' ? 'body' : ''),
      headers: {
        'x-forwarded-for': address,
        ...(credential !== undefined && { authorization: basic(credential) }),
      },
    }).then(({ status }) => status)
  return { ...tunnel, control, send }
}

test('passwords and addresses are checked at the entry, and nothing else reaches the client', async () => {
  const { send, requests } = await open('password', {
    basicAuth: { user: 'ann', password: 'right password' },
    allowIp: ['203.0.113.0/24'],
  })
  assert.equal(await send(), 401)
  assert.equal(await send('ann:wrong password'), 401)
  assert.equal(await send('ann:right password', '192.0.2.7'), 403)
  assert.deepEqual(requests(), [])
  assert.equal(await send('ann:right password'), 200)
  assert.equal(requests().length, 1)
  // The password was for the edge.
  assert.doesNotMatch(requests()[0] as string, /authorization/i)
})

test('a changed rule applies to the next request through a hop', async () => {
  const { control, send } = await open('changing')
  assert.equal(await send(), 200)
  control.setNameRules(await passwordRule('first password'))
  assert.equal(await send(), 401)
  assert.equal(await send('ann:first password'), 200)
  control.setNameRules(await passwordRule('second password'))
  assert.equal(await send('ann:first password'), 401)
  assert.equal(await send('ann:second password'), 200)
  control.setNameRules(null)
  // The entry edge rejects by the earlier rule until it is told of the change.
  await until('no password is asked for', async () => (await send()) === 200)
})

/** A GET on a connection of the edge that is used again. */
function getAgain(agent: Agent, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { host, 'x-forwarded-for': '203.0.113.1' }
    get({ host: '127.0.0.1', port: entry.port, headers, agent }, (response: IncomingMessage) => {
      response.resume().on('end', () => resolve(response.statusCode))
    }).on('error', reject)
  })
}

test('no request passes that was authorized by rules from before, on new streams and on used ones', async () => {
  const { control, requests, host, send } = await open('held')
  const other = await open('other')
  assert.equal(await other.send(), 200)
  const agent = new Agent({ keepAlive: true })
  after(() => agent.destroy())
  assert.equal(await getAgain(agent, host), 200)
  // From now on the entry edge hears nothing of the serving edge.
  relay.hold()
  control.setNameRules(DENY_ALL)
  const [reused, posted] = [getAgain(agent, host), send(undefined, undefined, 'POST')]
  // All streams share a connection, so the requests before this one are at the serving edge.
  const last = other.send()
  await until('the requests are at the serving edge', () => other.requests().length === 2)
  relay.release()
  assert.equal(await reused, 403)
  // Its body is sent already, so it cannot be repeated.
  assert.equal(await posted, 503)
  assert.equal(await last, 200)
  assert.equal(requests().length, 1)
  assert.equal(await send(), 403)
})

test('requests in progress continue when rules change', async () => {
  const { control, onStream, streams, send } = await open('progress')
  onStream((stream) =>
    stream.once('data', () => stream.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1')),
  )
  const before = streams().length
  const status = send()
  await until('the response begins', () => streams().length > before)
  control.setNameRules(DENY_ALL)
  await until('the entry edge has the rule', async () => (await send()) === 403)
  streams().at(-1)?.write('2')
  assert.equal(await status, 200)
})

/** A tunnel whose client stops while an upload through the entry edge is in progress. */
async function stopDuringUpload(name: string) {
  const tunnel = await open(name)
  let received = ''
  tunnel.onStream((stream) =>
    stream.on('data', (chunk) => {
      received += chunk
    }),
  )
  const headers = { host: tunnel.host, 'x-forwarded-for': '203.0.113.1' }
  const upload = sendRequest({ host: '127.0.0.1', port: entry.port, method: 'POST', headers })
  const status = new Promise<number | undefined>((resolve, reject) => {
    upload.on('error', reject)
    upload.on('response', (response) => resolve(response.resume().statusCode))
  })
  upload.write('first')
  await until('the upload is in progress', () => received.endsWith('first\r\n'))
  tunnel.session.goAway()
  await until('the entry edge has no client', async () => (await tunnel.send()) === 404)
  async function complete() {
    upload.end('last')
    await until('the upload is complete', () => received.includes('last'))
    tunnel.streams().at(-1)?.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    assert.equal(await status, 200)
  }
  return { ...tunnel, complete }
}

test('a client that connects again with other rules ends no request', async () => {
  const { complete } = await stopDuringUpload('again')
  await open('again', { allowIp: ['203.0.113.0/24'] })
  await complete()
})

test('the same if the entry edge asks for the tunnel meanwhile', async () => {
  const other = await open('asked-after')
  assert.equal(await other.send(), 200)
  const { complete, send } = await stopDuringUpload('asked')
  relay.hold()
  await open('asked', { allowIp: ['203.0.113.0/24'] })
  const [asked, last] = [send(), other.send()]
  await until('the question is at the serving edge', () => other.requests().length === 2)
  relay.release()
  assert.deepEqual(await Promise.all([asked, last]), [200, 200])
  await complete()
})

test('rules that change while the last client stops end no request', async () => {
  const { complete, control, send } = await stopDuringUpload('stopping')
  control.setNameRules(DENY_ALL)
  assert.equal(await send(), 404)
  await complete()
})

test('a reached quota rejects requests at the entry edge', async () => {
  const { send } = await open('quota')
  assert.equal(await send(), 200)
  serving.setQuota('acme', Date.now() + 60_000)
  await until('the entry edge rejects requests', async () => (await send()) === 429)
  serving.setQuota('acme', undefined)
  await until('the entry edge accepts requests', async () => (await send()) === 200)
})
