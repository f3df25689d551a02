// Checks whether tunnel clients can find the edges.
import { isLoopbackHost } from '../../lib/net/hostname.ts'
import type { Store } from '../store/engine/store.ts'
import { listReportedEdges, type ReportedEdge } from '../store/tunnels/edges.ts'
import { type Finding, ok, skipped, warning } from './check.ts'
import { checkTables } from './nodes.ts'

const NAMES_MAX = 5

export async function checkEdges(store: Store, baseUrl: string | undefined): Promise<Finding[]> {
  const unusable = await checkTables(store)
  if (unusable) return [unusable]
  const edges = (await listReportedEdges(store.db)).filter(({ revoked_at }) => revoked_at === null)
  if (edges.length === 0) return [skipped('There are no edges.')]
  const nameless = edges.filter(({ url }) => url === null)
  const insecure = edges.filter(({ url }) => url !== null && isRejectedByClients(url, baseUrl))
  const urls = new Set(edges.flatMap(({ url }) => url ?? []))
  const isolated = findIsolated(edges)
  const findings = [
    ...(nameless.length > 0
      ? [
          warning(
            `Edges without a public URL: ${listNames(nameless)}. Tunnel clients connect to the tunnel domain.`,
            'Set it with `adit admin edge set-url <id> <url>`. Edges that are not `adit edge` need none.',
          ),
        ]
      : []),
    ...(insecure.length > 0
      ? [
          warning(
            `Edges with a URL without encryption: ${listNames(insecure)}. Tunnel clients send no API key there.`,
            'Set an https:// URL with `adit admin edge set-url <id> <url>`.',
          ),
        ]
      : []),
    ...(isolated.length > 0
      ? [
          warning(
            `Edges with different URLs that do not forward requests to others: ${listNames(isolated)}. ` +
              'Tunnel clients connect to the tunnel domain, so its DNS must lead to the edges.',
            'Start them with `ADIT_EDGE_PEER_PORT`, or give all edges of a group the same URL.',
          ),
        ]
      : []),
    ...(isolated.length === 0 && urls.size > 1
      ? [ok(`Edges have ${urls.size} different URLs; tunnel clients get that of a connected edge`)]
      : []),
  ]
  return findings.length > 0 ? findings : [ok(`${[...urls].join()} is the URL of all edges`)]
}

/** Connected edges that cannot be reached through the others of their group, which have other URLs. */
function findIsolated(edges: readonly ReportedEdge[]): ReportedEdge[] {
  const connected = edges.filter(({ url, isConnected }) => url !== null && isConnected)
  const groups = Map.groupBy(connected, ({ edge_group }) => edge_group)
  return [...groups.values()].flatMap((group) =>
    new Set(group.map(({ url }) => url)).size > 1
      ? group.filter(({ peer_address }) => peer_address === null)
      : [],
  )
}

const isRejectedByClients = (url: string, baseUrl: string | undefined) =>
  url.startsWith('http:') && baseUrl?.startsWith('https:') && !isLoopbackHost(new URL(url).hostname)

function listNames(edges: readonly { id: string; name: string }[]): string {
  const names = edges.slice(0, NAMES_MAX).map(({ id, name }) => `"${name}" (${id})`)
  return edges.length > NAMES_MAX
    ? `${names.join(', ')} and ${edges.length - NAMES_MAX} more`
    : names.join(', ')
}
