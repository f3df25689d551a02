// A plain reverse proxy: node:http on both sides, with keep-alive. It pipes bodies and upgraded connections.
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
server.on('upgrade', ({ method, url: path, headers }, socket) => {
  const upstreamRequest = request({ host: '127.0.0.1', port, method, path, headers })
  upstreamRequest.on('upgrade', ({ statusCode, statusMessage, rawHeaders }, upstream) => {
    const lines = rawHeaders.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`))
    socket.write(`HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join('')}\r\n`)
    socket.pipe(upstream).pipe(socket)
    upstream.on('error', () => socket.destroy())
    upstream.on('close', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
  })
  socket.on('error', () => upstreamRequest.destroy())
  upstreamRequest.end()
})
server.listen(0, '127.0.0.1', () => listening(server))
