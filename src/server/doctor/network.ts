// Checks the services that the server depends on: DNS of the tunnel domain, the mail server and the identity
// provider. No email is sent and no one is signed in.
import type { Resolver } from 'node:dns/promises'
import { isLoopbackHost } from '../../lib/net/hostname.ts'
import { errorMessage } from '../../lib/startup-error.ts'
import type { Config } from '../config/server.ts'
import { type Finding, ok, problem, skipped, warning } from './check.ts'

const MAIL_TIMEOUT_MS = 5_000
/** Codes for a name or type of record that does not exist. */
const NO_RECORD = new Set(['ENOTFOUND', 'ENODATA'])

interface DnsOptions {
  domain: string | undefined
  resolver: Pick<Resolver, 'resolve4' | 'resolve6'>
  /** A label without a record of its own, so that only a wildcard matches. */
  label: string
}

/** Tunnels are two labels below the domain, and a wildcard record covers every depth. */
export async function checkDns({ domain, resolver, label }: DnsOptions): Promise<Finding[]> {
  if (domain === undefined) return [skipped('ADIT_TUNNEL_DOMAIN is invalid.')]
  if (isLoopbackHost(domain))
    return [skipped(`${domain} is this machine: set ADIT_TUNNEL_DOMAIN to open tunnels for others.`)]
  const names = { [domain]: domain, [`*.${domain}`]: `${label}.${label}.${domain}` }
  const findings = await Promise.all(
    Object.entries(names).map(async ([record, name]): Promise<Finding> => {
      const found = await resolve(resolver, name)
      if (found.addresses.length > 0) return ok(`${record} resolves to ${found.addresses.join(', ')}`)
      if (found.failure)
        return warning(
          `${record} cannot be resolved: the DNS server failed (${found.failure}).`,
          'Check the resolver in /etc/resolv.conf and the name servers of the domain.',
        )
      return problem(
        `${record} has no address.`,
        `Add a DNS record ${record} of type A or AAAA that points to the edge or its proxy (docs/edges/https.md).`,
      )
    }),
  )
  return findings
}

async function resolve(resolver: DnsOptions['resolver'], name: string) {
  const results = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const addresses = results.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  const codes = results.flatMap((one) => (one.status === 'rejected' ? [String(one.reason.code)] : []))
  return { addresses, failure: codes.find((code) => !NO_RECORD.has(code)) }
}

/** `url` is undefined if it is invalid, which `checkConfiguration` reports. */
export async function checkMail(mail: Partial<NonNullable<Config['mail']>> | undefined): Promise<Finding> {
  if (!mail) return skipped('No mail server: users get no email. ADIT_SMTP_URL and ADIT_MAIL_FROM set one.')
  if (mail.url === undefined) return skipped('ADIT_SMTP_URL is missing or invalid.')
  const { host, username } = new URL(mail.url)
  const { verifyMail } = await import('../mail.ts')
  try {
    await verifyMail(mail.url, MAIL_TIMEOUT_MS)
    return ok(`${host} accepts connections${username && ' and the login'}`)
  } catch (error) {
    return problem(`Mail cannot be sent through ${host}: ${mailFailure(error)}.`, mailRemedy(error as Error))
  }
}

/** Shortens an error of OpenSSL to its reason, without numbers and source files. */
function mailFailure(error: unknown): string {
  const text = errorMessage(error).replace(/\.?\s*$/, '')
  const [, reason] = /^[0-9A-F]+:error:[0-9A-F]+:SSL routines:[^:]*:([^:]+):/.exec(text) ?? []
  if (reason === undefined) return text
  return reason === 'wrong version number'
    ? 'the server does not use TLS from the start'
    : `TLS failed: ${reason}`
}

function mailRemedy({ message, code }: Error & { code?: string }): string {
  if (code === 'EAUTH')
    return 'Check user and password in ADIT_SMTP_URL. Special characters in them must be percent-encoded.'
  if (code === 'ETLS' || /certificate|\b(TLS|SSL)\b/i.test(message))
    return (
      'Check the certificate of the mail server, and whether it is for the host in ADIT_SMTP_URL. smtps:// ' +
      'uses TLS from the start (port 465), smtp:// after STARTTLS.'
    )
  return 'Check host and port in ADIT_SMTP_URL, whether the mail server runs, and whether a firewall blocks it.'
}

/** `issuer` is undefined if it is invalid, which `checkConfiguration` reports. */
export async function checkOidc(sso: Partial<NonNullable<Config['sso']>> | undefined): Promise<Finding> {
  if (!sso) return skipped('No identity provider. ADIT_OIDC_ISSUER sets one.')
  if (sso.issuer === undefined) return skipped('ADIT_OIDC_ISSUER is missing or invalid.')
  const { checkProvider } = await import('../auth/oidc.ts')
  try {
    await checkProvider(sso.issuer)
    return ok(`${sso.issuer} has a discovery document and signing keys`)
  } catch (error) {
    return problem(
      `Single sign-on with ${sso.issuer} fails: ${failureReason(error)}.`,
      'Check ADIT_OIDC_ISSUER: <issuer>/.well-known/openid-configuration must be reachable from this machine.',
    )
  }
}

/** `fetch` only says that it failed; the cause says why. */
const failureReason = (error: unknown): string =>
  errorMessage((error as Error).cause ?? error).replace(/\.$/, '')
