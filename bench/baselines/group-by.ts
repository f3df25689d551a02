// Usage without a roll-up: each request aggregates the raw events.
import fastify from 'fastify'
import pg from 'pg'
import { listening } from './listening.ts'

const { url, workspaceId, from } = JSON.parse(process.argv[2] as string) as {
  url: string
  workspaceId: string
  from: number
}
const pool = new pg.Pool({ connectionString: url, max: 10 })

const BY_DAY = {
  name: 'by-day',
  text: `select at / 86400000 as day, count(*) as events,
      sum(bytes_in) as bytes_in, sum(bytes_out) as bytes_out
    from raw_events where workspace_id = $1 and at >= $2 group by 1 order by 1`,
}

const server = fastify()
server.get('/usage', async () => {
  const { rows } = await pool.query({ ...BY_DAY, values: [workspaceId, from] })
  return { series: rows }
})
await server.listen({ port: 0, host: '127.0.0.1' })
listening(server.server)
