// Checks for settings that are invalid, unknown, or safe only on one machine.
import { isLoopbackHost } from '../../lib/net/hostname.ts'
import { errorMessage } from '../../lib/startup-error.ts'
import type { Config } from '../config/server.ts'
import { requireSecret } from '../session-secret.ts'
import { type Finding, ok, problem, warning } from './check.ts'

interface Settings {
  config: Partial<Config>
  errors: readonly string[]
  unknown: readonly string[]
}

export function checkConfiguration({ config, errors, unknown }: Settings): Finding[] {
  const findings = [
    ...errors.map((error) =>
      problem(`${error}.`, 'Correct the environment variable: docs/configuration.md.'),
    ),
    ...unknown.map((name) =>
      warning(`${name} is not a setting and is ignored.`, 'Correct its name, or remove it.'),
    ),
    ...checkSecret(config),
    ...checkAddress(config),
  ]
  return findings.length > 0 ? findings : [ok('All settings are valid.')]
}

function checkSecret({ secret, database }: Partial<Config>): Finding[] {
  if (!database) return []
  try {
    requireSecret({ secret, database })
    return []
  } catch (error) {
    return [problem(errorMessage(error))]
  }
}

/** Links in emails and session cookies depend on the URL that users open. */
function checkAddress({ host = '', baseUrl }: Partial<Config>): Finding[] {
  if (baseUrl === undefined)
    return isLoopbackHost(host)
      ? []
      : [
          warning(
            'ADIT_BASE_URL is not set, so links in emails and the dashboard start with the address that ' +
              'the server listens on.',
            'Set ADIT_BASE_URL to the URL that users open, e.g. https://adit.example.com.',
          ),
        ]
  const { protocol, hostname } = new URL(baseUrl)
  if (protocol === 'https:' || isLoopbackHost(hostname)) return []
  return [
    warning(
      'ADIT_BASE_URL is not https: API keys and sessions cross the network unencrypted.',
      'Put a proxy with TLS in front (docs/operations/README.md), and set ADIT_BASE_URL to its https URL.',
    ),
  ]
}
