// Webhook endpoints and their queues, in the database.
import type { Services } from '../../src/domain/context.ts'
import type { Tables } from '../../src/store/tables.ts'

/** Adds an endpoint that wants all events; returns its id. */
export async function addEndpoint(
  services: Services,
  workspaceId: string,
  given: Partial<Record<keyof Tables['webhook_endpoints'], string | number | null>> = {},
): Promise<string> {
  const id = services.ids('whk')
  const row = {
    id,
    workspace_id: workspaceId,
    url: 'https://hooks.example.com/',
    description: '',
    events: null,
    secret: '',
    created_at: services.clock(),
    last_position: 0,
    next_position: 1,
    ...given,
  }
  await services.store.transaction((tx) =>
    tx
      .insertInto('webhook_endpoints')
      .values(row as never)
      .execute(),
  )
  return id
}

/** In the order of the queue, with parsed bodies. */
export async function deliveriesOf({ store }: Services, endpointId: string) {
  const rows = await store.db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('endpoint_id', '=', endpointId)
    .orderBy('position')
    .execute()
  return rows.map((row) => ({ ...row, body: JSON.parse(row.body) }))
}
