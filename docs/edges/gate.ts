// A small edge: a gate in front of one application. Visitors get through with a good API key, and what they use is
// counted for the workspace that the key belongs to.
import { createServer, request } from 'node:http'
import { pipeline } from 'node:stream'
import { createControlPlane, startMeter, startVerifier } from 'adit/edge'

const {
  ADIT_URL = '',
  ADIT_EDGE_KEY = '',
  APPLICATION = '',
  PORT = '8088',
  FOLDER = './data/gate',
} = process.env
const onNotice = (line: string) => process.stderr.write(`${line}\n`)
const application = new URL(APPLICATION)

const controlPlane = createControlPlane({ url: ADIT_URL, credential: ADIT_EDGE_KEY })
const verifier = startVerifier(controlPlane, { onNotice })
const meter = await startMeter(controlPlane, { folder: FOLDER, onNotice })

const server = createServer(async (visitor, answer) => {
  const [, key = ''] = /^Bearer (\S+)$/i.exec(visitor.headers.authorization ?? '') ?? []
  // Nobody gets through when nobody can tell whether the key is good.
  const verdict = await verifier.verify(key).catch(() => undefined)
  if (!verdict?.valid) {
    answer.writeHead(verdict ? 401 : 503).end()
    return
  }
  const { slug } = verdict.workspace
  const { authorization: _key, ...headers } = visitor.headers
  const { hostname, port } = application
  const onward = request({ hostname, port, path: visitor.url, method: visitor.method, headers })
  onward.on('response', (reply) => {
    answer.writeHead(reply.statusCode ?? 502, reply.headers)
    reply.on('data', (bytes) => meter.transferred(slug, { bytesOut: bytes.length }))
    // Ends both sides when either one does.
    pipeline(reply, answer, () => {})
  })
  onward.on('error', () => answer.headersSent || answer.writeHead(502).end())
  answer.on('close', () => onward.destroy())
  visitor.on('data', (bytes) => meter.transferred(slug, { bytesIn: bytes.length }))
  visitor.pipe(onward)
  meter.transferred(slug, { requests: 1 })
})
server.listen(Number(PORT), () => onNotice(`The gate to ${APPLICATION} is open on port ${PORT}.`))

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, async () => {
    server.close()
    verifier.close()
    await meter.stop()
    process.exit()
  })
