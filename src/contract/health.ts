// Health checks for load balancers and supervisors, outside the versioned API.
import Type from 'typebox'
import { operation } from './operation.ts'

const status = <T extends string>(value: T) => ({
  schema: Type.Object({ status: Type.Literal(value) }),
  example: { status: value },
})

const readHealth = operation({
  id: 'health.read',
  method: 'GET',
  path: '/healthz',
  access: 'anyone',
  summary: 'Liveness check',
  description: 'Returns 200 while the process runs. Does not query the database.',
  response: { status: 200, description: 'The process is alive.', ...status('ok') },
})

const readReadiness = operation({
  id: 'readiness.read',
  method: 'GET',
  path: '/readyz',
  access: 'anyone',
  summary: 'Readiness check',
  description:
    'Queries the database. Returns 503 while the database does not respond or cannot be written, for ' +
    'example on a full disk, and during shutdown. The message says which.',
  response: {
    status: 200,
    description: 'The server accepts requests.',
    schema: Type.Object({
      status: Type.Literal('ready'),
      degraded: Type.Optional(Type.String({ description: 'What does not work, while reads do.' })),
    }),
    example: { status: 'ready' },
  },
  faults: ['unavailable'],
})

export const healthOperations = [readHealth, readReadiness] as const
