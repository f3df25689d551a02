// Schemas on a Citus coordinator. A schema, and not a database: that would need an administrator's connection
// to every worker.
import { withClient } from './postgres.ts'

/** Values for ADIT_DATABASE_URL. */
export interface CitusSchemas {
  distributed: string
  /** On the coordinator only, as on any PostgreSQL. */
  local: string
}

const schemaName = (schema: keyof CitusSchemas) => `adit_bench_${schema}`

export async function createCitusSchemas(url: string): Promise<CitusSchemas> {
  await dropCitusSchemas(url)
  const create = async (schema: keyof CitusSchemas) => {
    await withClient(url, (client) => client.query(`create schema ${schemaName(schema)}`))
    const own = new URL(url)
    // pg decodes %20, but not the + that `searchParams` writes for a space.
    own.search = `options=-c%20search_path=${schemaName(schema)}`
    return own.href
  }
  return { distributed: await create('distributed'), local: await create('local') }
}

export const dropCitusSchemas = (url: string) =>
  withClient(url, async (client) => {
    for (const schema of ['distributed', 'local'] as const)
      await client.query(`drop schema if exists ${schemaName(schema)} cascade`)
  })
