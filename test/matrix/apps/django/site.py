import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.template import engines
from django.urls import path

behind_tunnel = {
    'ALLOWED_HOSTS': ['.tunnels.example.test'],
    'SECURE_PROXY_SSL_HEADER': ('HTTP_X_FORWARDED_PROTO', 'https'),
}
settings.configure(
    DEBUG=True,
    SECRET_KEY='for tests',
    ROOT_URLCONF=__name__,
    MIDDLEWARE=['django.middleware.common.CommonMiddleware', 'django.middleware.csrf.CsrfViewMiddleware'],
    TEMPLATES=[{'BACKEND': 'django.template.backends.django.DjangoTemplates'}],
    **(behind_tunnel if 'BEHIND_TUNNEL' in os.environ else {}),
)

FORM = '<form method="post">{% csrf_token %}<input name="name"><button>Send</button></form>'


def index(request):
    if request.method == 'POST':
        return HttpResponse('Hello ' + request.POST['name'])
    return HttpResponse(engines['django'].from_string(FORM).render({}, request))


urlpatterns = [path('', index)]
execute_from_command_line(sys.argv)
