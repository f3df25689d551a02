// Pages for links that cannot be used.
import { Anchor, Button, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { signInOptionsQuery } from '../queries.ts'
import { AuthLayout } from './auth-layout.tsx'

/** Shown after a reload: the token was removed from the URL and is stored nowhere. */
export function MissingLink() {
  return (
    <AuthLayout title="Open the link again">
      <Text size="sm">
        To keep links secret, we remove them from the address bar. Open the link again from the message you
        received.
      </Text>
      <Button component={Link} href="/sign-in" variant="default">
        Go to sign-in
      </Button>
    </AuthLayout>
  )
}

export function InvalidLink() {
  const options = useQuery(signInOptionsQuery)
  return (
    <AuthLayout title="This link is invalid, expired or already used">
      <Text size="sm">
        Links work once and expire after 24 hours. If you have already used this one, sign in. Otherwise ask
        the member who invited you, or your server admin, for a new one.
      </Text>
      <Button component={Link} href="/sign-in">
        Go to sign-in
      </Button>
      {options.data?.resetByMail && (
        <Anchor component={Link} href="/forgot-password" size="sm" ta="center">
          Forgot password?
        </Anchor>
      )}
    </AuthLayout>
  )
}
