// A small edge: a gate in front of one application. Visitors get through with a good API key, and what they use is
// counted for the workspace that the key belongs to.
import { createServer, request } from 'node:http'
import { createControlPlane, startMeter, startVerifier } from 'adit/edge'

const { ADIT_URL = '', ADIT_EDGE_KEY = '', APPLICATION = '', PORT = '8088', FOLDER = './gate' } = process.env
const onNotice = (line: string) => process.stderr.write(`${line}\n`)

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
  const onward = request(APPLICATION + visitor.url, { method: visitor.method, headers }, (reply) => {
    answer.writeHead(reply.statusCode ?? 502, reply.headers)
    reply.on('data', (bytes) => meter.transferred(slug, { bytesOut: bytes.length }))
    reply.pipe(answer)
  })
  onward.on('error', () => answer.headersSent || answer.writeHead(502).end())
  visitor.on('data', (bytes) => meter.transferred(slug, { bytesIn: bytes.length }))
  visitor.pipe(onward)
  meter.transferred(slug, { requests: 1 })
})
server.listen(Number(PORT), () => onNotice(`The gate to ${APPLICATION} is open on port ${PORT}.`))

process.once('SIGTERM', async () => {
  server.close()
  verifier.close()
  await meter.stop()
  process.exit()
})
