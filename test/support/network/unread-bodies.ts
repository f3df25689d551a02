// Local servers that leave the body of a GET unread, as many do. Each responds with the path of the request,
// stores the body of POST /capture, and shows it at /captured and the paths of all requests at /seen.
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from '../cleanup.ts'
import { startHttp } from '../edges/tunneled.ts'
import { freePort } from '../processes/ports.ts'
import { startProgram } from '../processes/program.ts'
import { nginx, runNginx } from '../proxies/nginx.ts'
import { listen } from './listen.ts'

const PYTHON_SERVER = `
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
seen = []
captured = []
class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def respond(self, body):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        seen.append(self.path)
        shown = {'/captured': b''.join(captured), '/seen': '\\n'.join(seen).encode()}
        self.respond(shown.get(self.path, self.path.encode()))
    def do_HEAD(self):
        self.do_GET()
    def do_POST(self):
        seen.append(self.path)
        captured.append(self.rfile.read(int(self.headers['Content-Length'])))
        self.respond(b'stored')
    def log_message(self, *_):
        pass
server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
`

/** Python's http.server with HTTP/1.1. Undefined if Python is not installed. */
async function startPython(t: Test): Promise<number | undefined> {
  if (spawnSync('python3', ['--version']).status !== 0) return undefined
  const { output, waitFor } = startProgram(t, 'python3', ['-c', PYTHON_SERVER])
  await waitFor(/^\d+\n/)
  return Number(output())
}

interface Recorded {
  readonly seen: string[]
  captured: string
}

const show = ({ seen, captured }: Recorded, path: string) =>
  path === '/captured' ? captured : path === '/seen' ? seen.join('\n') : path

/** Takes what follows the head of any request but POST for the next request, and never closes. */
async function startRaw(t: Test): Promise<number> {
  const recorded: Recorded = { seen: [], captured: '' }
  const server = createServer((socket) => {
    let received = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
        const head = received.slice(0, end)
        const [method, path = ''] = head.split(' ')
        const length = method === 'POST' ? Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0) : 0
        if (received.length < end + 4 + length) return
        recorded.seen.push(path)
        recorded.captured += received.slice(end + 4, end + 4 + length)
        received = received.slice(end + 4 + length)
        const body = show(recorded, path)
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      }
    })
  })
  return listen(t, server)
}

async function startNode(t: Test): Promise<number> {
  const recorded: Recorded = { seen: [], captured: '' }
  const { port } = await startHttp(t, async (request, response) => {
    const { method, url = '' } = request
    recorded.seen.push(url)
    if (method === 'POST') recorded.captured += String(await buffer(request))
    response.end(show(recorded, url))
  })
  return port
}

/** In front of the Node server, which records. Undefined if nginx is not installed. */
async function startBehindNginx(t: Test): Promise<number | undefined> {
  if (!nginx) return undefined
  const [port, upstream] = [await freePort(), await startNode(t)]
  await runNginx(
    t,
    port,
    `events {}\nhttp { server { listen 127.0.0.1:${port}; location / {
      if ($request_uri ~ "^/visitor") { return 200 $request_uri; }
      proxy_pass http://127.0.0.1:${upstream}; } } }`,
  )
  return port
}

/** Each returns its port, or undefined if its program is not installed. */
export const unreadBodyServers: Record<string, (t: Test) => Promise<number | undefined>> = {
  "Python's http.server": startPython,
  'a raw socket server': startRaw,
  Node: startNode,
  nginx: startBehindNginx,
}
