# The image of ebb: one static program, also under the names of Redis's programs.
#
#   docker run -p 6379:6379 -v data:/data -e EBB_REQUIREPASS=secret ebb
#   docker run ebb --maxmemory 70%              options of ebb serve
#   docker run ebb redis-cli -h host ping       another of its programs
#
# Each directive can be set by a variable: EBB_MAXMEMORY_POLICY, EBB_REQUIREPASS_FILE (ebb serve --help).
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags '-s -w' -o /root/usr/bin/ebb ./cmd/ebb
RUN packaging/image.sh /root

# docker build --target debian: the same with a shell and Debian's tools, for charts and scripts that need them.
FROM debian:12-slim AS debian
COPY --from=build /root/usr/bin /usr/bin/
COPY --from=build /root/usr/share/doc/ebb /usr/share/doc/ebb/
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=10001:10001 /root/data /data
ENV EBB_DIR=/data EBB_BIND="* -::*" EBB_PROTECTED_MODE=no EBB_HTTP=0.0.0.0:9121
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 6379 9121
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s CMD ["ebb", "health"]
ENTRYPOINT ["ebb"]
CMD ["serve"]

FROM scratch
COPY --from=build /root /
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=10001:10001 /root/data /data
ENV PATH=/usr/bin EBB_DIR=/data EBB_BIND="* -::*" EBB_PROTECTED_MODE=no EBB_HTTP=0.0.0.0:9121
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 6379 9121
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s CMD ["ebb", "health"]
ENTRYPOINT ["ebb"]
CMD ["serve"]
