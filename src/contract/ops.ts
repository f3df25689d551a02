// What load balancers and supervisors ask. Not part of the versioned API, so outside its prefix.
import Type from 'typebox'
import { operation } from './operation.ts'

const status = <T extends string>(word: T) => ({
  schema: Type.Object({ status: Type.Literal(word) }),
  example: { status: word },
})

const readHealth = operation({
  id: 'health.read',
  method: 'GET',
  path: '/healthz',
  access: 'anyone',
  summary: 'Is the process alive?',
  description: 'Answers as long as the process can answer at all. It does not ask the database.',
  response: { status: 200, description: 'It is.', ...status('ok') },
  faults: [],
})

const readReadiness = operation({
  id: 'readiness.read',
  method: 'GET',
  path: '/readyz',
  access: 'anyone',
  summary: 'Should requests be sent here?',
  description:
    'Asks the database. Unavailable while that does not answer or cannot be written, such as on a full disk, and once a ' +
    'stop was asked for.',
  response: { status: 200, description: 'They should.', ...status('ready') },
  faults: ['unavailable'],
})

export const opsOperations = [readHealth, readReadiness] as const
