// A plain reverse proxy: node:http on both sides, with keep-alive, which pipes bodies.
import { Agent, createServer, request } from 'node:http'
import { listening } from './listening.ts'

const { port } = JSON.parse(process.argv[2] as string) as { port: number }
const agent = new Agent({ keepAlive: true })

const server = createServer((downstream, response) => {
  const { method, url: path, headers } = downstream
  const upstreamRequest = request({ agent, host: '127.0.0.1', port, method, path, headers }, (upstream) => {
    response.writeHead(upstream.statusCode as number, upstream.headers)
    upstream.pipe(response)
  })
  upstreamRequest.on('error', () => response.destroy())
  response.on('close', () => upstreamRequest.destroy())
  downstream.pipe(upstreamRequest)
})
server.listen(0, '127.0.0.1', () => listening(server))
