// Checks whether tunnel clients can find the edges.
import { isLoopbackHost } from '../../lib/net/hostname.ts'
import type { Store } from '../store/engine/store.ts'
import { listEdges } from '../store/tunnels/edges.ts'
import { type Finding, ok, skipped, warning } from './check.ts'
import { checkTables } from './nodes.ts'

const NAMES_MAX = 5

export async function checkEdges(store: Store, baseUrl: string | undefined): Promise<Finding[]> {
  const unusable = await checkTables(store)
  if (unusable) return [unusable]
  const edges = (await listEdges(store.db)).filter(({ revoked_at }) => revoked_at === null)
  if (edges.length === 0) return [skipped('There are no edges.')]
  const nameless = edges.filter(({ url }) => url === null)
  const insecure = edges.filter(({ url }) => url !== null && isRejectedByClients(url, baseUrl))
  const urls = new Set(edges.flatMap(({ url }) => url ?? []))
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
    ...(urls.size > 1
      ? [ok(`Edges have ${urls.size} different URLs, so tunnel clients connect to the tunnel domain`)]
      : []),
  ]
  return findings.length > 0 ? findings : [ok(`${[...urls].join()} is the URL of all edges`)]
}

const isRejectedByClients = (url: string, baseUrl: string | undefined) =>
  url.startsWith('http:') && baseUrl?.startsWith('https:') && !isLoopbackHost(new URL(url).hostname)

function listNames(edges: readonly { id: string; name: string }[]): string {
  const names = edges.slice(0, NAMES_MAX).map(({ id, name }) => `"${name}" (${id})`)
  return edges.length > NAMES_MAX
    ? `${names.join(', ')} and ${edges.length - NAMES_MAX} more`
    : names.join(', ')
}
