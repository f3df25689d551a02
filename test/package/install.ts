// `npm run test:install`: installs the packed `adit` with npm, dependencies included, and runs it.
import { after, test } from 'node:test'
import type { Test } from '../support/cleanup.ts'
import { assertServes } from './installed.ts'
import { pack } from './packed.ts'

const packages = pack({ after: after as Test['after'] })

test('adit, installed by npm, serves its dashboard and API', (t) =>
  assertServes(t, packages.install(['adit'], '--prefer-offline')))
