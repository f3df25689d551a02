// The usual implementation: Fastify, a pool of connections, one prepared and indexed SELECT for each
// verification.
import { hash } from 'node:crypto'
import fastify from 'fastify'
import pg from 'pg'
import { listening } from './listening.ts'

const { url } = JSON.parse(process.argv[2] as string) as { url: string }
const pool = new pg.Pool({ connectionString: url, max: 10 })

const FIND = {
  name: 'find',
  text: `select k.id, k.revoked_at, w.slug, w.name, w.provisioned_at
    from api_keys as k join workspaces as w on w.id = k.workspace_id where k.hash = $1`,
}

const server = fastify()
server.post('/verify', async (request) => {
  const { key } = request.body as { key: string }
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
})
await server.listen({ port: 0, host: '127.0.0.1' })
listening(server.server)
