// A small edge: a gate in front of one application. It forwards requests with a valid API key and counts
// usage for the workspace of the key.
import { createServer, request as sendRequest } from 'node:http'
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

const server = createServer(async (request, response) => {
  const [, key = ''] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  // If the key cannot be verified, the request is rejected.
  const result = await verifier.verify(key).catch(() => undefined)
  if (!result?.valid) {
    response.writeHead(result ? 401 : 503).end()
    return
  }
  const { slug } = result.workspace
  const { authorization: _key, ...headers } = request.headers
  const { hostname, port } = application
  const upstream = sendRequest({ hostname, port, path: request.url, method: request.method, headers })
  upstream.on('response', (reply) => {
    response.writeHead(reply.statusCode ?? 502, reply.headers)
    reply.on('data', (bytes) => meter.transferred(slug, { bytesOut: bytes.length }))
    // Closes both streams when either one ends.
    pipeline(reply, response, () => {})
  })
  upstream.on('error', () => response.headersSent || response.writeHead(502).end())
  response.on('close', () => upstream.destroy())
  request.on('data', (bytes) => meter.transferred(slug, { bytesIn: bytes.length }))
  request.pipe(upstream)
  meter.transferred(slug, { requests: 1 })
})
server.listen(Number(PORT), () => onNotice(`Listening on port ${PORT}, forwarding to ${APPLICATION}`))

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, async () => {
    server.close()
    verifier.close()
    await meter.stop()
    process.exit()
  })
