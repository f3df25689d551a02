// What the operator can do about errors of connections to PostgreSQL. Waiting helps with none of them.

/** Codes of Node's TLS. */
const UNKNOWN_CA = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

interface ConnectionError {
  code?: string | undefined
  message: string
  /** The path of a file that cannot be read. */
  path?: string
}

/** Undefined for errors that may pass, and for unknown ones. */
export function findRemedy({ code = '', message, path }: ConnectionError): string | undefined {
  if (code === '3D000') return 'Create it with createdb, or correct ADIT_DATABASE_URL.'
  if (code === '3F000' || (code === '42501' && /for schema/.test(message)))
    return 'As the owner of the database, run "grant usage, create on schema public to <role>".'
  if (code === '42501')
    return 'Let the role own the tables, or grant select, insert, update and delete on all of them.'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'Use a host name of the certificate in ADIT_DATABASE_URL, or issue a certificate for this one.'
  if (UNKNOWN_CA.has(code))
    return 'Add sslrootcert=<file with the certificate of its CA> to ADIT_DATABASE_URL.'
  if (code === 'CERT_HAS_EXPIRED') return 'Renew the certificate of the server.'
  if (/does not support SSL/.test(message))
    return 'Set ssl = on at the server, or remove sslmode from ADIT_DATABASE_URL if its network is trusted.'
  if (/no encryption$/.test(message))
    return 'If the server requires TLS, add sslmode=verify-full to ADIT_DATABASE_URL.'
  if (path) return 'Correct the path in ADIT_DATABASE_URL, or let this user read the file.'
  if (/unsupported startup parameter/.test(message))
    return 'Set ignore_startup_parameters in PgBouncer, as docs/operations/postgres.md says.'
  if (/password must be a/.test(message)) return 'Set PGPASSWORD, or add the password to ADIT_DATABASE_URL.'
  if (code.startsWith('28')) return 'Correct user and password in ADIT_DATABASE_URL.'
  return undefined
}
