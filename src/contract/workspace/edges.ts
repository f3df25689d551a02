// The edges that may carry tunnels of the workspace.
import Type from 'typebox'
import { EdgeName, EdgeUrl, Id, InstantOrNull, SearchText, TextOrNull } from '../fields.ts'
import { operation } from '../operation.ts'
import { cursorRule, NextCursor, PAGING, pageQuery } from './pages.ts'

export const ListedEdge = Type.Object(
  {
    id: Id,
    name: EdgeName,
    url: Type.Unsafe<string | null>({
      ...EdgeUrl,
      type: ['string', 'null'],
      description: 'Public URL, where tunnel clients connect; null if the operator has set none.',
    }),
    version: Type.Unsafe<string | null>({ ...TextOrNull, description: 'Name and version of its program.' }),
    startedAt: InstantOrNull('When it was started; null if it never ran.'),
    lastSyncAt: InstantOrNull('When it last reported its tunnels; null if never.'),
    isConnected: Type.Boolean({ description: 'Whether it has reported its tunnels in the last 30 seconds.' }),
    tunnels: Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description: 'Open tunnels of the workspace at this edge.',
    }),
  },
  { title: 'Edge' },
)

export const listEdges = operation({
  id: 'edges.list',
  method: 'GET',
  path: '/edges',
  access: 'key',
  summary: 'List edges',
  description: `Lists the edges that may carry tunnels of the workspace, by name. ${PAGING}`,
  query: Type.Object(pageQuery(SearchText(cursorRule))),
  response: {
    status: 200,
    description: 'The edges.',
    schema: Type.Object({ edges: Type.Array(ListedEdge), next: NextCursor }, { title: 'EdgeList' }),
    example: {
      edges: [
        {
          id: 'edge_01k9x2m4q7r8s9t0v1w2x3y4z5',
          name: 'fra-1',
          url: 'https://edge.example.com',
          version: 'adit 0.1.0',
          startedAt: '2026-11-15T08:00:00.000Z',
          lastSyncAt: '2026-11-15T10:02:11.000Z',
          isConnected: true,
          tunnels: 3,
        },
      ],
      next: null,
    },
  },
  tool: { name: 'list_edges', title: 'List edges', hints: { readOnly: true } },
})
