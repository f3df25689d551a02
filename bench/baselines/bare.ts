// The minimal server: node:http that reads the request and sends a fixed response.
import { createServer, type IncomingMessage } from 'node:http'
import { listening } from './listening.ts'

const { status, headers, body, date, keepAliveS } = JSON.parse(process.argv[2] as string) as {
  status: number
  headers: Record<string, string>
  body: string
  date: boolean
  keepAliveS: number
}

const server = createServer((request, response) => {
  const respond = () => {
    response.sendDate = date
    response.writeHead(status, headers)
    response.end(body)
  }
  if (request.method === 'POST') readBody(request, respond)
  else {
    request.resume()
    respond()
  }
})
server.keepAliveTimeout = keepAliveS * 1000
server.listen(0, '127.0.0.1', () => listening(server))

function readBody(request: IncomingMessage, done: (body: string) => void): void {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk) => {
    body += chunk
  })
  request.on('end', () => done(body))
}
