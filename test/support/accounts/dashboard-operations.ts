// Valid requests to every operation of the dashboard, so that only access decides the response.
import { apis } from '../../../src/contract/apis.ts'
import { type Operation, type Role, roles } from '../../../src/contract/operation.ts'
import { PASSWORD, type TestBrowser } from './users.ts'

const bodies: Record<string, object> = {
  'sign-in.password': { email: 'unknown@example.com', password: PASSWORD },
  'sign-in.code': { code: '000000' },
  'sign-in.request-reset': { email: 'unknown@example.com' },
  'links.read': { link: 'x'.repeat(43) },
  'links.redeem': { link: 'x'.repeat(43) },
  'account.rename': { name: 'Same' },
  'account.password': { current: 'wrong password', password: 'another good password' },
  'two-factor.begin': { password: 'wrong password' },
  'two-factor.confirm': { code: '000000' },
  'two-factor.disable': { password: 'wrong password' },
  'keys.create': { label: 'x', personal: true },
  'devices.read': { code: 'BCDF-GHJK' },
  'devices.approve': { code: 'BCDF-GHJK' },
  'devices.deny': { code: 'BCDF-GHJK' },
  'invitations.create': { email: 'invited@example.com', role: 'member' },
  'members.set-role': { role: 'member' },
  'names.reserve': { name: 'my-app' },
  'names.set-access': { allowIp: ['192.0.2.0/24'] },
  'webhooks.create': { url: 'https://hooks.example.com/' },
  'webhooks.rotate': { overlap: 'none' },
  'workspaces.create': { slug: 'another', name: 'Another' },
  'settings.rename': { name: 'Acme' },
  // Another slug: a confirmation that matches would archive the workspace.
  'settings.archive': { confirm: 'other' },
  'settings.policy': {
    keyDaysMax: null,
    keysManageKeys: true,
    keyCreators: 'member',
    twoFactorRequired: false,
  },
}

export const allOperations: readonly Operation[] = apis.dashboard.operations

export const isRole = (access: string): access is Role => (roles as readonly string[]).includes(access)

export const examplePath = ({ path }: Operation, workspace = 'acme'): string =>
  path
    .replace('{workspace}', workspace)
    .replace('{id}', 'usr_none')
    .replace('{name}', 'my-app')
    .replace('{position}', '1')

export const callOperation = (browser: TestBrowser, operation: Operation, workspace = 'acme') =>
  browser.call(
    operation.method,
    examplePath(operation, workspace),
    operation.method === 'POST' ? (bodies[operation.id] ?? {}) : undefined,
  )
