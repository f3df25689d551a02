// Connections to PostgreSQL besides those of a server.
import pg from 'pg'

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Runs a statement and returns its rows. */
export const query = (url: string, statement: string, values?: unknown[]) =>
  withClient(url, async (client) => (await client.query(statement, values)).rows)
