// The minimal server: node:http that sends a fixed response.
import { createServer } from 'node:http'
import { listening } from './listening.ts'

const { status, headers, body, date, keepAliveS } = JSON.parse(process.argv[2] as string) as {
  status: number
  headers: Record<string, string>
  body: string
  date: boolean
  keepAliveS: number
}

const server = createServer((request, response) => {
  request.resume()
  response.sendDate = date
  response.writeHead(status, headers)
  response.end(body)
})
server.keepAliveTimeout = keepAliveS * 1000
server.listen(0, '127.0.0.1', () => listening(server))
