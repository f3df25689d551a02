// Bare node:http with one prepared, indexed SELECT for each request, and the same JSON as Adit: a
// verification, or the usage of a year.
import { hash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import pg from 'pg'
import { listening } from './listening.ts'

const { url, workspaceId, from } = JSON.parse(process.argv[2] as string) as {
  url: string
  workspaceId: string
  /** The first day. */
  from: number
}
const pool = new pg.Pool({ connectionString: url, max: 10 })

const FIND = {
  name: 'find',
  text: `select k.id, k.revoked_at, w.slug, w.name, w.provisioned_at
    from api_keys as k join workspaces as w on w.id = k.workspace_id where k.hash = $1`,
}
const READ = {
  name: 'read',
  text: `select day, bytes_in + bytes_out as bytes, peak_tunnels, events, last_seen
    from usage_days where workspace_id = $1 and day >= $2 order by day`,
}

async function verify(request: IncomingMessage) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { key } = JSON.parse(Buffer.concat(chunks).toString()) as { key: string }
  const { rows } = await pool.query({ ...FIND, values: [hash('sha256', key, 'hex')] })
  const [row] = rows
  if (!row) return { valid: false, reason: 'unknown' }
  if (row.revoked_at !== null) return { valid: false, reason: 'revoked' }
  const workspace = {
    slug: row.slug,
    name: row.name,
    provisioned: row.provisioned_at !== null,
    tunnelBase: `${row.slug}.localhost`,
  }
  return { valid: true, keyId: row.id, workspace }
}

async function readUsage() {
  const { rows } = await pool.query({ ...READ, values: [workspaceId, from] })
  let [totalBytes, peakTunnels, eventCount] = [0, 0, 0]
  const series = rows.map((row) => {
    const bytes = Number(row.bytes)
    totalBytes += bytes
    peakTunnels = Math.max(peakTunnels, row.peak_tunnels)
    eventCount += Number(row.events)
    return { day: new Date(Number(row.day)).toISOString(), bytes, peakTunnels: row.peak_tunnels }
  })
  const lastSeen = new Date(Number(rows.at(-1)?.last_seen)).toISOString()
  return { totalBytes, peakTunnels, eventCount, lastSeen, series }
}

const server = createServer(async (request, response) => {
  const body = JSON.stringify(await (request.method === 'POST' ? verify(request) : readUsage()))
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
})
server.listen(0, '127.0.0.1', () => listening(server))
