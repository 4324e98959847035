// The judge of the tests on real brokers: writes, disturbs and compares with nothing but Kafka's own Java clients.
//
// Run by `java -cp JARS Judge.java`. It reads one JSON command per line on stdin ({"do": "compare", ...}) and answers
// each with one JSON line ({"ok": true, ...} or {"ok": false, "error": "..."}). It ends when stdin ends, so it never
// outlives the test that started it. Commands run one after another; live writers and latency readers have threads
// of their own and are known by name.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

public final class Judge {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, Admin> ADMINS = new HashMap<>();
    static final Map<String, Live> LIVE = new HashMap<>();
    static final Map<String, Latency> LATENCY = new HashMap<>();
    static final Map<String, KafkaProducer<byte[], byte[]>> OPEN = new HashMap<>();

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                run(JSON.readTree(line), answer);
                answer.put("ok", true);
            } catch (Throwable fault) {
                Throwable cause = fault instanceof ExecutionException && fault.getCause() != null ? fault.getCause() : fault;
                cause.printStackTrace();
                answer.removeAll().put("ok", false).put("error", cause.toString());
            }
            answers.println(answer);
            answers.flush();
        }
        System.exit(0);
    }

    static void run(JsonNode c, ObjectNode answer) throws Exception {
        switch (c.get("do").asText()) {
            case "ready" -> Cluster.ready(admin(c), c.get("brokers").asInt());
            case "settled" -> Cluster.settled(admin(c), c.get("brokers").asInt());
            case "topics" -> Cluster.topics(admin(c), answer);
            case "create_topics" -> Cluster.createTopics(admin(c), c);
            case "delete_topic" -> Cluster.deleteTopic(admin(c), c.get("topic").asText());
            case "grow_topic" -> admin(c).createPartitions(
                Map.of(c.get("topic").asText(), NewPartitions.increaseTo(c.get("partitions").asInt()))).all().get();
            case "configs" -> Cluster.configs(admin(c), c.get("topic").asText(), answer);
            case "alter_configs" -> Cluster.alterConfigs(admin(c), c);
            case "deny" -> Cluster.deny(admin(c), c.get("topic").asText(), c.get("operation").asText());
            case "describe" -> Cluster.describe(admin(c), c.get("topic").asText(), answer);
            case "offsets" -> Cluster.offsets(admin(c), c.get("topic").asText(), answer);
            case "move_leaders" -> Cluster.moveLeaders(admin(c), strings(c.get("topics")), answer);
            case "producers" -> Cluster.producers(admin(c), c, answer);
            case "delete_records" -> admin(c).deleteRecords(Map.of(
                new TopicPartition(c.get("topic").asText(), c.get("partition").asInt()),
                RecordsToDelete.beforeOffset(c.get("before").asLong()))).all().get();
            case "quota" -> Cluster.quota(admin(c), c);
            case "write" -> Writes.write(c, answer);
            case "write_transactions" -> Writes.transactions(c, answer);
            case "transact" -> Writes.transact(c);
            case "live_start" -> LIVE.put(c.get("name").asText(), new Live(c));
            case "live_stop" -> LIVE.remove(c.get("name").asText()).stop(answer);
            case "latency_start" -> LATENCY.put(c.get("name").asText(), new Latency(c));
            case "latency_stop" -> LATENCY.remove(c.get("name").asText()).stop(answer);
            case "compare" -> new Comparison(c.get("source").asText(), c.get("target").asText()).run(c, answer);
            case "compare_latest" -> LastValues.compare(c, answer);
            case "read" -> Comparison.read(c, answer);
            default -> throw new IllegalArgumentException("no such command: " + c);
        }
    }

    static Admin admin(JsonNode c) {
        return ADMINS.computeIfAbsent(c.get("bootstrap").asText(), servers -> Admin.create(Map.of(
            "bootstrap.servers", servers, "request.timeout.ms", 15_000, "default.api.timeout.ms", 60_000,
            "reconnect.backoff.max.ms", 500)));
    }

    static List<String> strings(JsonNode array) {
        List<String> all = new ArrayList<>();
        array.forEach(one -> all.add(one.asText()));
        return all;
    }

    /** Topics, leaders and configs of one cluster. */
    static final class Cluster {
        static void ready(Admin admin, int brokers) throws Exception {
            until("all brokers registered", () -> admin.describeCluster().nodes().get().size() == brokers);
        }

        /** All brokers are there and every partition has a leader and all of its replicas in sync. */
        static void settled(Admin admin, int brokers) throws Exception {
            until("all replicas in sync", () -> {
                if (admin.describeCluster().nodes().get().size() != brokers) return false;
                Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
                return admin.describeTopics(names).allTopicNames().get().values().stream()
                    .flatMap(topic -> topic.partitions().stream())
                    .allMatch(p -> p.leader() != null && p.isr().size() == p.replicas().size());
            });
        }

        static void topics(Admin admin, ObjectNode answer) throws Exception {
            Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
            ObjectNode all = answer.putObject("topics");
            for (TopicDescription topic : described(admin, names).values()) all.put(topic.name(), topic.partitions().size());
        }

        /** A broker that was asked may not have heard yet of a topic that another one names, made or deleted just now. */
        static Map<String, TopicDescription> described(Admin admin, Collection<String> topics) throws Exception {
            Map<String, TopicDescription> found = new HashMap<>();
            for (Map.Entry<String, KafkaFuture<TopicDescription>> topic : admin.describeTopics(topics).topicNameValues().entrySet())
                try {
                    found.put(topic.getKey(), topic.getValue().get());
                } catch (ExecutionException e) {
                    if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) throw e;
                }
            return found;
        }

        static TopicDescription described(Admin admin, String topic) throws Exception {
            Map<String, TopicDescription> found = new HashMap<>();
            until("brokers to know " + topic, () -> {
                found.putAll(described(admin, List.of(topic)));
                return found.containsKey(topic);
            });
            return found.get(topic);
        }

        static void createTopics(Admin admin, JsonNode c) throws Exception {
            List<NewTopic> topics = new ArrayList<>();
            c.get("topics").forEach(topic -> topics.add(newTopic(topic, (short) c.get("replication").asInt())));
            admin.createTopics(topics).all().get();
            List<String> names = topics.stream().map(NewTopic::name).toList();
            // Metadata names a leader before that broker takes writes. A producer whose first batch is refused for it
            // and whose second is taken never gets the first one in: OUT_OF_ORDER_SEQUENCE_NUMBER without end.
            until("answers of the leaders of " + names, () -> {
                Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
                for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values())
                    for (TopicPartitionInfo p : topic.partitions()) {
                        if (p.leader() == null) return false;
                        latest.put(new TopicPartition(topic.name(), p.partition()), OffsetSpec.latest());
                    }
                admin.listOffsets(latest).all().get();
                return true;
            });
        }

        static NewTopic newTopic(JsonNode c, short replication) {
            Map<Integer, List<Integer>> replicas = new HashMap<>();
            for (JsonNode partition : c.get("replicas")) {
                List<Integer> ids = new ArrayList<>();
                partition.forEach(id -> ids.add(id.asInt()));
                replicas.put(replicas.size(), ids);
            }
            Map<String, String> configs = new HashMap<>();
            c.get("configs").fields().forEachRemaining(e -> configs.put(e.getKey(), e.getValue().asText()));
            NewTopic topic = replicas.isEmpty()
                ? new NewTopic(c.get("name").asText(), c.get("partitions").asInt(), replication)
                : new NewTopic(c.get("name").asText(), replicas);
            return topic.configs(configs);
        }

        static void deleteTopic(Admin admin, String name) throws Exception {
            admin.deleteTopics(List.of(name)).all().get();
            until("topic " + name + " is gone", () -> !admin.listTopics().names().get().contains(name));
        }

        /** The settings that somebody put on the topic: neither the broker's nor Kafka's defaults. */
        static void configs(Admin admin, String topic, ObjectNode answer) throws Exception {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            ObjectNode all = answer.putObject("configs");
            admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().stream()
                .filter(e -> e.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG)
                .forEach(e -> all.put(e.name(), e.value()));
        }

        /** Sets and removes settings of a topic itself. */
        static void alterConfigs(Admin admin, JsonNode c) throws Exception {
            List<AlterConfigOp> changes = new ArrayList<>();
            c.get("set").fields().forEachRemaining(e -> changes.add(
                new AlterConfigOp(new ConfigEntry(e.getKey(), e.getValue().asText()), AlterConfigOp.OpType.SET)));
            for (String name : strings(c.get("remove"))) {
                changes.add(new AlterConfigOp(new ConfigEntry(name, ""), AlterConfigOp.OpType.DELETE));
            }
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, c.get("topic").asText());
            admin.incrementalAlterConfigs(Map.of(topic, changes)).all().get();
        }

        /** From now on everybody may do everything with the topic but one operation. */
        static void deny(Admin admin, String topic, String operation) throws Exception {
            ResourcePattern pattern = new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL);
            admin.createAcls(List.of(
                new AclBinding(pattern, new AccessControlEntry(
                    "User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW)),
                new AclBinding(pattern, new AccessControlEntry(
                    "User:*", "*", AclOperation.valueOf(operation), AclPermissionType.DENY)))).all().get();
        }

        static void describe(Admin admin, String topic, ObjectNode answer) throws Exception {
            TopicDescription description = described(admin, topic);
            ArrayNode partitions = answer.putArray("partitions");
            for (TopicPartitionInfo p : description.partitions()) {
                ObjectNode one = partitions.addObject().put("leader", p.leader() == null ? -1 : p.leader().id());
                ArrayNode replicas = one.putArray("replicas");
                p.replicas().forEach(node -> replicas.add(node.id()));
                ArrayNode isr = one.putArray("isr");
                p.isr().forEach(node -> isr.add(node.id()));
            }
        }

        static void offsets(Admin admin, String topic, ObjectNode answer) throws Exception {
            ArrayNode partitions = answer.putArray("partitions");
            int count = described(admin, topic).partitions().size();
            for (int p = 0; p < count; p++) {
                TopicPartition partition = new TopicPartition(topic, p);
                partitions.addObject().put("start", offset(admin, partition, OffsetSpec.earliest()))
                    .put("end", offset(admin, partition, OffsetSpec.latest()));
            }
        }

        static long offset(Admin admin, TopicPartition partition, OffsetSpec spec) throws Exception {
            return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get().offset();
        }

        /** Sets a quota of a client id, or takes it away where there is no value, and waits until the broker keeps it. */
        static void quota(Admin admin, JsonNode c) throws Exception {
            ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, c.get("client_id").asText()));
            String key = c.get("key").asText();
            Double value = c.get("value").isNull() ? null : c.get("value").asDouble();
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
                entity, List.of(new ClientQuotaAlteration.Op(key, value))))).all().get();
            until("quota " + key + " of " + entity, () -> {
                Map<String, Double> kept = admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get()
                    .getOrDefault(entity, Map.of());
                return Objects.equals(kept.get(key), value);
            });
        }

        /** Makes the next replica of each partition its preferred one, and the preferred one its leader. */
        static void moveLeaders(Admin admin, List<String> topics, ObjectNode answer) throws Exception {
            Map<TopicPartition, Optional<NewPartitionReassignment>> rotated = new HashMap<>();
            for (TopicDescription topic : admin.describeTopics(topics).allTopicNames().get().values())
                for (TopicPartitionInfo p : topic.partitions()) {
                    List<Integer> ids = p.replicas().stream().map(Node::id).collect(Collectors.toList());
                    Collections.rotate(ids, -1);
                    rotated.put(new TopicPartition(topic.name(), p.partition()), Optional.of(new NewPartitionReassignment(ids)));
                }
            admin.alterPartitionReassignments(rotated).all().get();
            Map<TopicPartition, Optional<Throwable>> elected =
                admin.electLeaders(ElectionType.PREFERRED, rotated.keySet()).partitions().get();
            answer.put("moved", elected.values().stream().filter(Optional::isEmpty).count());
        }

        static void producers(Admin admin, JsonNode c, ObjectNode answer) throws Exception {
            TopicPartition partition = new TopicPartition(c.get("topic").asText(), c.get("partition").asInt());
            ArrayNode all = answer.putArray("producers");
            for (ProducerState state : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers())
                all.addObject().put("producer_id", state.producerId()).put("epoch", state.producerEpoch())
                    .put("last_sequence", state.lastSequence()).put("last_timestamp", state.lastTimestamp())
                    .put("transaction_start", state.currentTransactionStartOffset().orElse(-1));
        }

        static void until(String what, Callable<Boolean> condition) throws Exception {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
            Exception last = null;
            while (System.nanoTime() < deadline) {
                try {
                    if (condition.call()) return;
                    last = null;
                } catch (ExecutionException e) {
                    last = e;
                }
                Thread.sleep(100);
            }
            throw new TimeoutException("after 90 s not yet: " + what + (last == null ? "" : "; last error " + last.getCause()));
        }
    }

    /** Bounded writes: every record is acknowledged when the command answers. */
    static final class Writes {
        static KafkaProducer<byte[], byte[]> producer(JsonNode c, String codec, String transactionalId) {
            Map<String, Object> p = new HashMap<>(Map.of(
                "bootstrap.servers", c.get("bootstrap").asText(), "acks", "all", "compression.type", codec,
                "linger.ms", c.path("linger_ms").asInt(5), "batch.size", c.path("batch_bytes").asInt(16_384),
                "max.request.size", 32 << 20, "buffer.memory", 128L << 20, "delivery.timeout.ms", 600_000,
                "max.block.ms", 600_000, "reconnect.backoff.max.ms", 500));
            p.put("enable.idempotence", c.path("idempotent").asBoolean(true));
            if (transactionalId != null) p.put("transactional.id", transactionalId);
            return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
        }

        static void write(JsonNode c, ObjectNode answer) throws Exception {
            int count = c.get("count").asInt();
            int partitions = c.get("partitions").asInt();
            AtomicReference<Exception> failure = new AtomicReference<>();
            try (KafkaProducer<byte[], byte[]> producer = producer(c, c.get("codec").asText(), null)) {
                for (int i = 0; i < count && failure.get() == null; i++)
                    producer.send(record(c, i, i % partitions), (done, e) -> { if (e != null) failure.compareAndSet(null, e); });
                producer.flush();
            }
            if (failure.get() != null) throw failure.get();
            answer.put("written", count);
        }

        /** Transactions of `each` records spread over all partitions; every `abort_every`-th one is aborted. */
        static void transactions(JsonNode c, ObjectNode answer) throws Exception {
            int partitions = c.get("partitions").asInt(), each = c.get("each").asInt(), abortEvery = c.get("abort_every").asInt();
            int written = 0, aborted = 0;
            try (KafkaProducer<byte[], byte[]> producer = producer(c, c.get("codec").asText(), "judge-" + c.get("topic").asText())) {
                producer.initTransactions();
                for (int t = 1; t <= c.get("count").asInt(); t++) {
                    producer.beginTransaction();
                    for (int i = 0; i < each; i++, written++) producer.send(record(c, written, written % partitions));
                    if (abortEvery > 0 && t % abortEvery == 0) {
                        producer.flush();
                        producer.abortTransaction();
                        aborted++;
                    } else {
                        producer.commitTransaction();
                    }
                }
            }
            answer.put("written", written).put("aborted_transactions", aborted);
        }

        /** Goes on with the transaction that its id has open, or begins one; `end` is commit, abort, or open. */
        static void transact(JsonNode c) throws Exception {
            String id = c.get("transactional_id").asText();
            KafkaProducer<byte[], byte[]> producer = OPEN.remove(id);
            if (producer == null) {
                producer = producer(c, c.get("codec").asText(), id);
                producer.initTransactions();
                producer.beginTransaction();
            }
            int partitions = c.get("partitions").asInt();
            for (int i = 0; i < c.get("count").asInt(); i++) producer.send(record(c, i, i % partitions));
            producer.flush();
            switch (c.get("end").asText()) {
                case "open" -> OPEN.put(id, producer);
                case "commit" -> producer.commitTransaction();
                case "abort" -> producer.abortTransaction();
                default -> throw new IllegalArgumentException("no such end: " + c);
            }
            if (!OPEN.containsKey(id)) producer.close();
        }

        /** Record number i: its id stands at the beginning of its value, in its key and in a header, where it has them. */
        static ProducerRecord<byte[], byte[]> record(JsonNode c, int i, int partition) {
            long id = c.path("first_id").asLong(0) + i;
            String nulls = c.path("nulls").asText("none"); // none, some, keys (all keys null)
            byte[] key = nulls.equals("keys") || (nulls.equals("some") && i % 3 == 0) ? null : bytes("key-" + id);
            int size = c.path("value_bytes").asInt(100);
            byte[] value = nulls.equals("some") && i % 7 == 0 ? null
                : c.path("shape").asText("text").equals("json") ? json(id, size) : value("id-" + id, id, size);
            Long timestamp = c.hasNonNull("timestamp_ms") ? c.get("timestamp_ms").asLong() + i * c.path("timestamp_step_ms").asLong(1) : null;
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(c.get("topic").asText(), partition, timestamp, key, value);
            if (c.path("headers").asBoolean(false) && i % 4 != 3) {
                record.headers().add("trace", bytes("first-" + id)).add("other", new byte[0])
                    .add("trace", bytes("second-" + id)).add("trace", null);
            }
            return record;
        }

        /** A value of exactly `size` bytes (or the label alone if that is longer), which compresses to about three quarters. */
        static byte[] value(String label, long seed, int size) {
            byte[] head = bytes(label + "/");
            byte[] value = Arrays.copyOf(head, Math.max(size, head.length));
            SplittableRandom random = new SplittableRandom(seed);
            for (int i = head.length; i < value.length; i++) value[i] = (byte) (' ' + (random.nextInt() >>> 26));
            return value;
        }

        /** An event as services write them, of exactly `size` bytes (or a little more than 200 if that is more). */
        static byte[] json(long id, int size) {
            SplittableRandom random = new SplittableRandom(id);
            StringBuilder text = new StringBuilder(size + 16);
            text.append("{\"id\":\"id-").append(id)
                .append("\",\"kind\":\"order.").append(WORDS[random.nextInt(WORDS.length)])
                .append("\",\"customer\":\"").append(Long.toHexString(random.nextLong()))
                .append("\",\"amount_cents\":").append(random.nextInt(1_000_000))
                .append(",\"currency\":\"EUR\",\"created_at_ms\":").append(1_700_000_000_000L + id)
                .append(",\"request\":\"").append(new UUID(random.nextLong(), random.nextLong()))
                .append("\",\"note\":\"");
            while (text.length() < size - 2) text.append(WORDS[random.nextInt(WORDS.length)]).append(' ');
            text.setLength(Math.max(size, 202) - 2);
            return bytes(text.append("\"}").toString());
        }

        static final String[] WORDS = ("accepted address batch bonus carrier change city code confirmed cost country date delayed "
            + "delivered discount door express failed gift hold invoice item late list lost north open order paid parcel part "
            + "price ready refund return sent shelf signed south stock street swap total tracked transit value week west zone").split(" ");

        static byte[] bytes(String text) {
            return text.getBytes(StandardCharsets.UTF_8);
        }
    }

    /** Writes in the background at a steady rate until it is stopped, with acks=all; counts what was acknowledged. */
    static final class Live {
        final AtomicLong acked = new AtomicLong();
        final AtomicReference<Exception> failure = new AtomicReference<>();
        final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
        final Thread thread;
        volatile boolean stopping;

        Live(JsonNode c) {
            for (JsonNode topic : c.get("topics"))
                producers.computeIfAbsent(topic.get("codec").asText(), codec -> Writes.producer(c, codec, null));
            thread = new Thread(() -> write(c), "live-" + c.get("name").asText());
            thread.setDaemon(true);
            thread.start();
        }

        void write(JsonNode c) {
            double perNano = c.get("records_per_second").asDouble() / 1e9;
            int size = c.path("value_bytes").asInt(100);
            long shift = c.path("timestamp_shift_ms").asLong(0), begin = System.nanoTime();
            JsonNode topics = c.get("topics");
            for (long sent = 0; !stopping && failure.get() == null; ) {
                if (sent >= (System.nanoTime() - begin) * perNano) {
                    java.util.concurrent.locks.LockSupport.parkNanos(2_000_000);
                    continue;
                }
                JsonNode topic = topics.get((int) (sent % topics.size()));
                long nth = sent / topics.size();
                int partitions = topic.get("partitions").asInt(), partition = (int) (nth % partitions);
                String label = topic.get("topic").asText() + "-" + partition + "#" + nth / partitions + "@" + System.nanoTime();
                producers.get(topic.get("codec").asText()).send(
                    new ProducerRecord<>(topic.get("topic").asText(), partition,
                        shift == 0 ? null : System.currentTimeMillis() + shift,
                        nth % 5 == 0 ? null : Writes.bytes("key-" + nth), Writes.value(label, nth, size)),
                    (done, e) -> { if (e == null) acked.incrementAndGet(); else failure.compareAndSet(null, e); });
                sent++;
            }
        }

        void stop(ObjectNode answer) throws Exception {
            stopping = true;
            thread.join();
            producers.values().forEach(KafkaProducer::close);
            if (failure.get() != null) throw failure.get();
            answer.put("acked", acked.get());
        }
    }

    /** Reads topics that Live writes, from their ends, and measures the time from the writer's send to this reader. */
    static final class Latency {
        final List<Long> nanos = new ArrayList<>();
        final CountDownLatch started = new CountDownLatch(1);
        final Thread thread;
        volatile boolean stopping;

        Latency(JsonNode c) throws Exception {
            thread = new Thread(() -> read(c.get("bootstrap").asText(), strings(c.get("topics"))), "latency");
            thread.setDaemon(true);
            thread.start();
            started.await();
        }

        void read(String servers, List<String> topics) {
            try (KafkaConsumer<byte[], byte[]> consumer = Comparison.consumer(servers)) {
                List<TopicPartition> all = topics.stream().flatMap(topic -> consumer.partitionsFor(topic).stream())
                    .map(p -> new TopicPartition(p.topic(), p.partition())).toList();
                consumer.assign(all);
                consumer.seekToEnd(all);
                all.forEach(consumer::position);
                started.countDown();
                while (!stopping)
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                        long now = System.nanoTime();
                        String value = new String(record.value(), StandardCharsets.UTF_8);
                        nanos.add(now - Long.parseLong(value.substring(value.indexOf('@') + 1, value.indexOf('/'))));
                    }
            }
        }

        void stop(ObjectNode answer) throws Exception {
            stopping = true;
            thread.join();
            Collections.sort(nanos);
            if (nanos.isEmpty()) throw new IllegalStateException("not one record was read");
            answer.put("records", nanos.size()).put("p50_us", at(0.50)).put("p99_us", at(0.99)).put("max_us", at(1.0));
        }

        long at(double share) {
            return nanos.get((int) Math.min(nanos.size() - 1, Math.ceil(nanos.size() * share))) / 1000;
        }
    }

    /** Reads both sides whole and compares them record by record; where they differ, says how many records are wrong. */
    static final class Comparison {
        final String source, target;
        long records, lost, repeated, foreign, outOfOrder;

        Comparison(String source, String target) {
            this.source = source;
            this.target = target;
        }

        void run(JsonNode c, ObjectNode answer) throws Exception {
            ArrayNode differences = answer.putArray("differences");
            String level = c.path("source_isolation").asText("read_uncommitted");
            try (KafkaConsumer<byte[], byte[]> from = consumer(source, level); KafkaConsumer<byte[], byte[]> to = consumer(target)) {
                for (JsonNode pair : c.get("topics")) {
                    String upstream = pair.get("source").asText(), downstream = pair.get("target").asText();
                    int partitions = from.partitionsFor(upstream).size(), there = to.partitionsFor(downstream).size();
                    if (partitions != there)
                        differences.add(upstream + " has " + partitions + " partitions, " + downstream + " has " + there);
                    for (int p = 0; p < Math.min(partitions, there); p++)
                        partition(new Reader(from, new TopicPartition(upstream, p), c.path("source_from").asLong(-1)),
                            new Reader(to, new TopicPartition(downstream, p), -1), differences);
                }
            }
            answer.put("records", records).put("lost", lost).put("repeated", repeated)
                .put("foreign", foreign).put("out_of_order", outOfOrder);
        }

        void partition(Reader from, Reader to, ArrayNode differences) throws Exception {
            while (true) {
                ConsumerRecord<byte[], byte[]> a = from.next(), b = to.next();
                if (a == null && b == null) return;
                String difference = a == null ? "more records on the target"
                    : b == null ? "fewer records on the target" : difference(a, b);
                if (difference != null) {
                    differences.add(difference + ": source " + show(from, a) + "; target " + show(to, b));
                    count(from, to);
                    return;
                }
                records++;
            }
        }

        static String difference(ConsumerRecord<byte[], byte[]> a, ConsumerRecord<byte[], byte[]> b) {
            if (!Arrays.equals(a.key(), b.key())) return "key";
            if (!Arrays.equals(a.value(), b.value())) return "value";
            if (a.timestamp() != b.timestamp()) return "timestamp";
            // A producer can only tell times of its own kind.
            if (b.timestampType() != a.timestampType() && b.timestampType() != org.apache.kafka.common.record.TimestampType.CREATE_TIME) return "timestamp type";
            Header[] left = a.headers().toArray(), right = b.headers().toArray();
            if (left.length != right.length) return "number of headers";
            for (int i = 0; i < left.length; i++)
                if (!left[i].key().equals(right[i].key()) || !Arrays.equals(left[i].value(), right[i].value())) return "header " + i;
            return null;
        }

        static String show(Reader reader, ConsumerRecord<byte[], byte[]> record) {
            if (record == null) return reader.partition + " ended at " + reader.end;
            String value = record.value() == null ? "null" : new String(record.value(), 0, Math.min(60, record.value().length), StandardCharsets.UTF_8);
            return reader.partition + " offset " + record.offset() + " " + record.timestampType() + " " + record.timestamp()
                + " key " + (record.key() == null ? "null" : new String(record.key(), StandardCharsets.UTF_8))
                + " value " + value + " headers " + record.headers();
        }

        /** Second pass over a partition that differs: which source record is each target record? */
        void count(Reader from, Reader to) throws Exception {
            from.rewind();
            to.rewind();
            Map<ByteBuffer, ArrayDeque<Integer>> expected = new HashMap<>();
            Set<ByteBuffer> known = new HashSet<>();
            int index = 0;
            for (ConsumerRecord<byte[], byte[]> r = from.next(); r != null; r = from.next())
                expected.computeIfAbsent(digest(r), any -> new ArrayDeque<>()).add(index++);
            known.addAll(expected.keySet());
            int furthest = -1;
            for (ConsumerRecord<byte[], byte[]> r = to.next(); r != null; r = to.next()) {
                ByteBuffer digest = digest(r);
                ArrayDeque<Integer> places = expected.get(digest);
                if (!known.contains(digest)) {
                    foreign++;
                } else if (places.isEmpty()) {
                    repeated++;
                } else {
                    int place = places.poll();
                    if (place < furthest) outOfOrder++;
                    furthest = Math.max(furthest, place);
                }
            }
            lost += expected.values().stream().mapToInt(ArrayDeque::size).sum();
        }

        static ByteBuffer digest(ConsumerRecord<byte[], byte[]> record) throws Exception {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            field(digest, record.key());
            field(digest, record.value());
            for (Header header : record.headers()) {
                field(digest, Writes.bytes(header.key()));
                field(digest, header.value());
            }
            field(digest, Writes.bytes(Long.toString(record.timestamp())));
            return ByteBuffer.wrap(digest.digest());
        }

        static void field(MessageDigest digest, byte[] bytes) {
            digest.update(ByteBuffer.allocate(4).putInt(bytes == null ? -1 : bytes.length).flip());
            if (bytes != null) digest.update(bytes);
        }

        /** Fetches wait for 10 ms only: questions about the next partition stand behind them on the same connection. */
        static KafkaConsumer<byte[], byte[]> consumer(String servers) {
            return consumer(servers, "read_uncommitted");
        }

        static KafkaConsumer<byte[], byte[]> consumer(String servers, String isolationLevel) {
            return new KafkaConsumer<>(Map.of("fetch.max.wait.ms", 10, "bootstrap.servers", servers, "isolation.level", isolationLevel,
                "auto.offset.reset", "none", "max.partition.fetch.bytes", 16 << 20, "max.poll.records", 5000,
                "enable.auto.commit", false, "allow.auto.create.topics", false, "reconnect.backoff.max.ms", 500),
                new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        /** The first records of a partition as text, for people. */
        static void read(JsonNode c, ObjectNode answer) throws Exception {
            ArrayNode lines = answer.putArray("records");
            try (KafkaConsumer<byte[], byte[]> consumer = consumer(c.get("bootstrap").asText())) {
                Reader reader = new Reader(consumer, new TopicPartition(c.get("topic").asText(), c.get("partition").asInt()), -1);
                for (ConsumerRecord<byte[], byte[]> r = reader.next(); r != null && lines.size() < c.get("limit").asInt(); r = reader.next())
                    lines.addObject().put("offset", r.offset()).put("timestamp", r.timestamp())
                        .put("key", r.key() == null ? null : new String(r.key(), StandardCharsets.UTF_8))
                        .put("value", r.value() == null ? null : new String(r.value(), StandardCharsets.UTF_8));
            }
        }
    }

    /** What readers of a compacted topic end with: the last value of each key, one partition at a time. */
    static final class LastValues {
        final Map<ByteBuffer, byte[]> values = new HashMap<>();
        final KafkaConsumer<byte[], byte[]> consumer;
        long records, keys, checksum;

        LastValues(KafkaConsumer<byte[], byte[]> consumer) {
            this.consumer = consumer;
        }

        static void compare(JsonNode c, ObjectNode answer) throws Exception {
            String upstream = c.get("topics").get("source").asText(), downstream = c.get("topics").get("target").asText();
            ArrayNode differences = answer.putArray("differences");
            try (KafkaConsumer<byte[], byte[]> from = Comparison.consumer(c.get("source").asText());
                 KafkaConsumer<byte[], byte[]> to = Comparison.consumer(c.get("target").asText())) {
                LastValues source = new LastValues(from), target = new LastValues(to);
                int partitions = from.partitionsFor(upstream).size();
                if (to.partitionsFor(downstream).size() != partitions) throw new IllegalStateException("not " + partitions + " partitions of " + downstream);
                for (int p = 0; p < partitions; p++) {
                    source.read(new TopicPartition(upstream, p));
                    target.read(new TopicPartition(downstream, p));
                    Set<ByteBuffer> all = new HashSet<>(source.values.keySet());
                    all.addAll(target.values.keySet());
                    String place = upstream + "-" + p + " ";
                    all.stream().filter(key -> !Arrays.equals(source.values.get(key), target.values.get(key))).limit(10)
                        .forEach(key -> differences.add(place + text(key.array()) + ": source " + text(source.values.get(key))
                            + "; target " + text(target.values.get(key))));
                }
                source.show(answer.putObject("source"));
                target.show(answer.putObject("target"));
            }
        }

        void read(TopicPartition partition) throws Exception {
            values.clear();
            Reader reader = new Reader(consumer, partition, -1);
            for (ConsumerRecord<byte[], byte[]> r = reader.next(); r != null; r = reader.next(), records++)
                if (r.value() == null) values.remove(ByteBuffer.wrap(r.key()));
                else values.put(ByteBuffer.wrap(r.key()), r.value());
            values.forEach((key, value) -> {
                java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
                crc.update(key.array());
                crc.update(value);
                checksum += crc.getValue();
            });
            keys += values.size();
        }

        void show(ObjectNode side) {
            side.put("records", records).put("keys", keys).put("checksum", checksum);
        }

        static String text(byte[] bytes) {
            return bytes == null ? "none" : new String(bytes, StandardCharsets.UTF_8);
        }
    }

    /** One partition from its log start, or a given offset, to the end that it had when reading began. */
    static final class Reader {
        final KafkaConsumer<byte[], byte[]> consumer;
        final TopicPartition partition;
        final long start, end;
        Iterator<ConsumerRecord<byte[], byte[]>> fetched;

        Reader(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long from) {
            this.consumer = consumer;
            this.partition = partition;
            start = from >= 0 ? from : consumer.beginningOffsets(List.of(partition)).get(partition);
            end = consumer.endOffsets(List.of(partition)).get(partition);
            rewind();
        }

        void rewind() {
            consumer.assign(List.of(partition));
            consumer.seek(partition, start);
            fetched = Collections.emptyIterator();
        }

        ConsumerRecord<byte[], byte[]> next() throws Exception {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (!fetched.hasNext()) {
                if (consumer.position(partition) >= end) return null;
                if (System.nanoTime() > deadline) throw new TimeoutException(partition + " stuck at " + consumer.position(partition) + " of " + end);
                fetched = consumer.poll(Duration.ofMillis(200)).records(partition).iterator();
            }
            return fetched.next();
        }
    }
}
