const UNTRUSTED =
  /(self-signed certificate( in certificate chain)?|unable to (verify the first|get (local )?issuer) certificate)(; .*--use-system-ca)?/

/** Replaces Node's advice for certificates of an unknown CA, which is to change its command line. */
export const withCertificateAdvice = (message: string): string =>
  message.replace(
    UNTRUSTED,
    '$1. To trust your own CA, set NODE_EXTRA_CA_CERTS to the file of its certificate, or ' +
      'NODE_USE_SYSTEM_CA=1 if the system trusts it',
  )
