// The audit log of a workspace in the dashboard.
import Type from 'typebox'
import { Id, Instant, SearchText, UtcTimestamp } from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace } from './members.ts'
import { Cursor, Limit, NextPage } from './pages.ts'

export type ChangeValue = string | number | boolean | null | readonly string[]

/** `[before, after]` by field; null is a value that does not exist. */
export type Changes = Record<string, readonly [before: ChangeValue, after: ChangeValue]>

const FilterText = (description: string) =>
  Type.Optional(SearchText({ minLength: 1, maxLength: 200, description }))

const filter = {
  actor: FilterText('Only actions of this user, API key, operator or IP address, by `actor.id`.'),
  action: FilterText('Only this action, e.g. `key.created`.'),
  target: FilterText('Only actions on this, by `target.id`.'),
  from: Type.Optional(UtcTimestamp({ description: 'Only entries at or after this time.' })),
  to: Type.Optional(UtcTimestamp({ description: 'Only entries before this time.' })),
}

const listAudit = operation({
  id: 'audit.list',
  method: 'GET',
  path: '/workspaces/{workspace}/audit',
  access: 'member',
  summary: 'List audit log entries',
  description:
    'Lists entries, newest first, in pages. A request examines a limited number of entries, so a page may ' +
    'have no entries although there is a next page. Members see sign-in entries of their own account only; ' +
    'admins and owners see those of all members.',
  params: Type.Object(InWorkspace),
  query: Type.Object({ ...filter, limit: Limit, cursor: Cursor }),
  response: {
    status: 200,
    description: 'A page of entries.',
    schema: Type.Object(
      {
        entries: Type.Array(
          Type.Object(
            {
              id: Id,
              at: Instant,
              actor: Type.Object({
                kind: Type.String({
                  description: '`user`, `key`, `operator`, `server`, or `anonymous` for a failed sign-in.',
                }),
                id: Id,
                name: Type.Unsafe<string | null>({
                  type: ['string', 'null'],
                  description: 'Name at the time of the action.',
                }),
              }),
              action: Type.String({ description: 'The action, e.g. `key.created`.' }),
              target: Type.Object({
                kind: Type.Unsafe<string | null>({
                  type: ['string', 'null'],
                  description: 'What the action is on, e.g. `key`; null if unknown.',
                }),
                id: Id,
                name: Type.Unsafe<string | null>({
                  type: ['string', 'null'],
                  description: 'Label or name at the time of the action.',
                }),
              }),
              address: Type.Unsafe<string | null>({
                type: ['string', 'null'],
                description:
                  'Client IP address, or the host name for commands of the operator; null if unknown. ' +
                  'Members see their own only.',
              }),
              detail: Type.Unsafe<string | null>({
                type: ['string', 'null'],
                description: 'Sign-in method or reason of a failure, e.g. `password`; otherwise null.',
              }),
              count: Type.Integer({
                minimum: 1,
                description: 'Number of repetitions: equal failures within a minute share an entry.',
              }),
              changes: Type.Unsafe<Changes>({
                type: 'object',
                description:
                  'Fields that the action has changed, each with its value before and after, e.g. ' +
                  '`{"role": ["member", "admin"]}`. Null is a value that does not exist. Never secrets; ' +
                  'members do not see IP addresses of others.',
                additionalProperties: { type: 'array', minItems: 2, maxItems: 2, items: {} },
              }),
            },
            { title: 'AuditEntry' },
          ),
        ),
        next: NextPage,
      },
      { title: 'AuditPage' },
    ),
    example: {
      entries: [
        {
          id: 'aud_01k9x2m4q7r8s9t0v1w2x3y4z5',
          at: '2026-11-15T10:02:11.000Z',
          actor: { kind: 'user', id: 'usr_01k9x2m4q7r8s9t0v1w2x3y4z5', name: 'Ann Example' },
          action: 'key.created',
          target: { kind: 'key', id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5', name: 'ci' },
          address: '192.0.2.7',
          detail: null,
          count: 1,
          changes: { label: [null, 'ci'], expiresAt: [null, '2027-02-01T09:30:00.000Z'] },
        },
      ],
      next: null,
    },
  },
  faults: [],
})

const exportAudit = operation({
  id: 'audit.export',
  method: 'POST',
  path: '/workspaces/{workspace}/audit/export',
  access: 'admin',
  summary: 'Export audit log entries',
  description:
    'Returns all entries that match, newest first, as CSV with a header line, or as one JSON object per line. ' +
    'The export is an entry itself, so this is not a GET request.',
  params: Type.Object(InWorkspace),
  body: Type.Object(
    {
      format: Type.Unsafe<'csv' | 'ndjson'>({ type: 'string', enum: ['csv', 'ndjson'] }),
      ...filter,
    },
    { title: 'AuditExport' },
  ),
  response: {
    status: 200,
    description: 'The entries as a file.',
    schema: Type.String(),
    example: 'time,actor kind,actor,actor id,action,…',
    file: true,
  },
  faults: ['rate_limited'],
})

export const auditOperations = [listAudit, exportAudit] as const
