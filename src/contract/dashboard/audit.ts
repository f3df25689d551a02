// The audit log of a workspace in the dashboard.
import Type from 'typebox'
import { Id, Instant, OneOf, ok, SearchText, TextOrNull, UtcTimestamp } from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace } from './members.ts'
import { Cursor, Limit, NextPage } from './pages.ts'

export type ChangeValue = string | number | boolean | null | readonly string[]

/** `[before, after]` by field; null is a value that does not exist. */
export type Changes = Record<string, readonly [before: ChangeValue, after: ChangeValue]>

const FilterText = Type.Optional(SearchText({ minLength: 1, maxLength: 200 }))

const filter = {
  actor: FilterText,
  action: FilterText,
  target: FilterText,
  from: Type.Optional(UtcTimestamp()),
  to: Type.Optional(UtcTimestamp()),
}

export const auditOperations = [
  operation({
    id: 'audit.list',
    method: 'GET',
    path: '/workspaces/{workspace}/audit',
    access: 'member',
    summary: 'List audit log entries',
    params: Type.Object(InWorkspace),
    query: Type.Object({ ...filter, limit: Limit, cursor: Cursor }),
    response: ok({
      entries: Type.Array(
        Type.Object({
          id: Id,
          at: Instant,
          actor: Type.Object({ kind: Type.String(), id: Id, name: TextOrNull }),
          action: Type.String(),
          target: Type.Object({ kind: TextOrNull, id: Id, name: TextOrNull }),
          /**
           * IP address; for commands of the operator, the host name. Members see it in their own entries
           * only.
           */
          address: TextOrNull,
          detail: TextOrNull,
          /** Equal failures within a minute share an entry. */
          count: Type.Integer({ minimum: 1 }),
          changes: Type.Unsafe<Changes>({
            type: 'object',
            additionalProperties: { type: 'array', minItems: 2, maxItems: 2, items: {} },
          }),
        }),
      ),
      next: NextPage,
    }),
  }),
  operation({
    id: 'audit.export',
    method: 'POST',
    path: '/workspaces/{workspace}/audit/export',
    access: 'admin',
    audit: ['audit.exported'],
    summary: 'Export audit log entries',
    params: Type.Object(InWorkspace),
    body: Type.Object({ format: OneOf(['csv', 'ndjson']), ...filter }),
    response: { status: 200, schema: Type.String(), file: true },
    faults: ['rate_limited'],
  }),
] as const
