// Workspaces whose usage is spread over the shards of a cluster.

import { addWorkspace, databaseUrl, type TestServer } from '../support/api/server.ts'
import { listShards } from '../support/databases/citus.ts'

/** Named w-0, w-1 and so on, with the shard and worker of each. */
export async function addWorkspaces(server: TestServer, count: number) {
  const slugs = Array.from({ length: count }, (_, index) => `w-${index}`)
  const workspaces = await Promise.all(slugs.map((slug) => addWorkspace(server, slug)))
  const readShards = () =>
    listShards(
      databaseUrl(server),
      workspaces.map(({ workspace }) => workspace.id),
    )
  return { slugs, workspaces, readShards }
}
